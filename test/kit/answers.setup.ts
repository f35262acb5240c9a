// Fails a test file when a server has sent an answer that does not have the declared schema.
import { afterAll, expect } from 'vitest';
import { wrongAnswers } from './check-answers.js';

afterAll(() => {
  expect(wrongAnswers.splice(0)).toEqual([]);
});
