import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'coverage/'] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: 'SpreadElement > ObjectExpression, SpreadElement > ArrayExpression',
          message: 'Write the entries of the literal without the spread.',
        },
      ],
      'no-restricted-properties': [
        'error',
        {
          object: 'AbortSignal',
          property: 'any',
          message: 'It keeps a reference with each signal for as long as that lives; see src/lib/async.ts.',
        },
      ],
      '@typescript-eslint/consistent-type-definitions': ['error', 'type'],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-confusing-void-expression': 'off',
      // There are no enums, and the rule takes a fifth of the time.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
    },
  },
  {
    files: ['**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: { performance: 'readonly', process: 'readonly' } },
  },
  {
    files: ['examples/**/*.js'],
    languageOptions: { globals: { fetch: 'readonly', URLSearchParams: 'readonly' } },
  },
  {
    files: ['src/http/assets/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'document',
          'DOMParser',
          'Node',
          'navigator',
          'Notification',
          'sessionStorage',
          'location',
          'fetch',
          'window',
          'URL',
          'URLSearchParams',
          'setTimeout',
          'setInterval',
          'AbortSignal',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
);
