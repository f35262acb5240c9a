// Renders docs/reference/errors-and-codes.md: the form of every error kind in each protocol, and the messages of
// upgrade jobs.
import { toErrorResponse } from '../../../src/http/errors.ts';
import { type ErrorKind, ServiceError } from '../../../src/lib/errors.ts';
import { errorResponses } from '../../../src/rest/openapi/errors.ts';
import { toFault, toFaultResponse } from '../../../src/soap/faults.ts';
import { type Code, type Facts, codes, writeMessage } from '../../../src/upgrades/planning/messages.ts';
import { namespace } from '../../kit/server.ts';
import { type JobKind, findCodes, jobKinds } from './job-codes.ts';
import { block, code, formatPage, table } from './markdown.ts';

const intro = `
Every error that Steward answers and every message code of an upgrade job: for authors of clients.
`;

const errorsIntro = `
## Errors

The REST API answers every error with this body. \`details\` lists every problem that the server found; it is empty if the message says everything.
`;

const errorsOutro = `
- \`401\` is the HTTP status of both token errors and of wrong credentials; \`error.code\` distinguishes them.
- \`405\` has the header \`Allow\`. \`429\` and \`503\` have the header \`Retry-After\`, in seconds.
- With \`PROFILE=family\` the REST API sends JSON errors with HTTP status 200 and the same body. Pages, SOAP faults and \`/ready\` keep their status.
- The catalog has no operation that causes \`wrong-credentials\`, \`forbidden\`, \`conflict\` or \`too-many-requests\`, so SOAP clients do not meet these faults.
- A request that is not valid HTTP gets \`400\`, headers over 16 KiB get \`431\`, and a request that does not arrive in time gets \`408\`, each with the same body and \`error.code\`. The server then closes the connection.

The order in which the server checks a request is in [the protocol](../protocol.md#order-of-checks).

## SOAP faults

A SOAP 1.1 fault has HTTP status 500 unless the table above says otherwise, because many toolkits lose a fault with another status. In SOAP 1.2 a \`Sender\` fault has 400. In both versions, a body that does not arrive in time or comes in chunks that are too small has 400. Every fault about the body has a detail with the number and the text for programs:
`;

const faultsOutro = `
Two faults have no detail, and no error kind:

| Fault | When |
| --- | --- |
| \`MustUnderstand\` | A header block for this server has \`mustUnderstand\`. The catalog understands no header block. In SOAP 1.2 the header names each block. |
| \`VersionMismatch\` | The envelope is neither SOAP 1.1 nor 1.2. The answer is a SOAP 1.1 fault. A document that is no envelope at all gets this fault if its content type is that of SOAP 1.2, and a \`Client\` fault otherwise. |
`;

const messagesIntro = `
## Messages of upgrade jobs

The table shows in which kinds of jobs each code appears; a release that installs patches in the same job also has the codes of modules. **Parsed** marks texts that client programs parse: they do not change. Parts in angle brackets vary.
`;

/** 2072 is the only other code of Steward itself. */
const ownCodes = codes.filter((own) => own > 2900);

const messagesOutro = `
- 2011, 2173 and 2175 contain numbers as in the table: no leading zeros, no separators.
- The text of 2153 is a JSON object and nothing else.
- 2901 appears once more for each workload that cannot be reverted; it then names the step \`Put back <name>\`. If reverting stops early, it names
  the step \`Put back the workloads\` and the workloads that are left.
- The texts of a step that has no step template begin with \`Skipped (no step template): \`; 2153 says \`skipped\` for each database instead, and on Kubernetes for \`*\`.
- 2906 and 2907 appear only if there is a step template for the hook.
- 2908 and 2909 appear only in scheduled jobs.
- Codes 2072 and ${ownCodes[0]} to ${ownCodes.at(-1)} are codes of Steward itself. All others belong to the interface that Steward implements.

What a job does, and in which order the messages appear, is in [the protocol](../protocol.md#upgrade-jobs).
`;

type ResponseJson = {
  readonly content: {
    readonly 'application/json': {
      readonly examples?: Readonly<
        Record<string, { readonly value: { readonly error: { readonly message: string } } }>
      >;
    };
  };
};

/** Every kind, with the sentence of the OpenAPI document that says when it is answered. */
function errorKinds(): { kind: ErrorKind; when: string }[] {
  return Object.values(errorResponses()).flatMap((response) => {
    const { examples = {} } = (response as unknown as ResponseJson).content['application/json'];
    return Object.entries(examples).map(([kind, { value }]) => ({
      kind: kind as ErrorKind,
      when: value.error.message,
    }));
  });
}

function errorRow(error: ServiceError | undefined, kind: string, when: string): string[] {
  const { status, body } = toErrorResponse(error);
  const fault = toFault(error, namespace);
  const faults = (['1.1', '1.2'] as const).map((version) => {
    const response = toFaultResponse(version, fault, error);
    const name = /(?:faultcode|soap:Value)>soap:(\w+)/.exec(response.body)?.[1] ?? '';
    return `${code(name)} ${response.status}`;
  });
  return [kind === '' ? 'any other' : code(kind), String(status), String(body.error.code), ...faults, when];
}

function errorsPart(): string {
  const example = new ServiceError('invalid', 'Invalid or missing input parameters.', {
    problems: [{ field: 'num', message: 'must be an integer from 1 to 100.' }],
  });
  const rows = errorKinds().map(({ kind, when }) => errorRow(new ServiceError(kind, ''), kind, when));
  const defect = errorRow(
    undefined,
    '',
    'A defect of the server. It is logged, and the answer reveals nothing.',
  );
  const head = ['Kind', 'HTTP status', '`error.code`', 'SOAP 1.1', 'SOAP 1.2', 'When'];
  const fault = toFaultResponse(
    '1.1',
    toFault(new ServiceError('token-missing', 'Token required.'), namespace),
  );
  return [
    errorsIntro,
    block('json', JSON.stringify(toErrorResponse(example).body, null, 2)),
    table(head, [...rows, defect]),
    errorsOutro,
    block('xml', /<detail>.*<\/detail>/.exec(fault.body)?.[0] ?? ''),
    faultsOutro,
  ].join('\n\n');
}

/** 11 hours, 22 minutes, 33 seconds and 444 milliseconds: each part of a text shows its own number. */
const elapsedMs = ((11 * 60 + 22) * 60 + 33) * 1000 + 444;

const placeholders: Facts = {
  operation: 'upgrade',
  from: '<from>',
  to: '<to>',
  name: '<name>',
  image: '<image>',
  done: 777,
  total: 888,
  elapsedMs,
  cause: '<cause>',
  isSkipped: false,
  isPatched: true,
  databases: '{"catalog":{"status":"success"}}',
  stepJob: '<Job>',
  startAt: '<ISO time>',
};

const numbers: Readonly<Record<string, string>> = {
  777: '<done>',
  888: '<total>',
  [elapsedMs]: '<ms>',
  [Math.round(elapsedMs / 60_000)]: '<minutes>',
  '11 hh': '<h> hh',
  '22 min': '<min> min',
  '33 sec': '<sec> sec',
  444: '<ms>',
};

/** The facts of codes with more than one text. */
const variants: Partial<Record<Code, readonly Partial<Facts>[]>> = {
  2011: [{}, { operation: 'rollback' }],
  2038: [{}, { isPatched: false }],
  2153: [{}, { databases: '{"*":{"status":"skipped"}}' }],
  2902: [
    { cause: 'by <user>' },
    { cause: 'by <user> to put its workloads back' },
    { cause: 'after a restart' },
  ],
  2903: [{ cause: '<user>' }],
  2904: [
    { image: 'its former image <image>' },
    { image: 'the image <image> of the version' },
    { image: 'its former image <image>', isPatched: false },
    { image: '' },
  ],
};

export function textsOf(messageCode: Code): string[] {
  return (variants[messageCode] ?? [{}]).map((facts) => {
    const { message } = writeMessage(messageCode, { ...placeholders, ...facts }, 0);
    return Object.entries(numbers).reduce(
      (text, [number, name]) => text.replace(new RegExp(`\\b${number}\\b`), name),
      message,
    );
  });
}

const parsed: readonly Code[] = [2011, 2153, 2173, 2175];

function messagesPart(codesOf: Readonly<Record<JobKind, ReadonlySet<number>>>): string {
  const rows = codes.map((messageCode) => [
    String(messageCode),
    textsOf(messageCode).map(code).join('<br>'),
    ...jobKinds.map((kind) => (codesOf[kind].has(messageCode) ? 'yes' : '')),
    parsed.includes(messageCode) ? 'yes' : '',
  ]);
  const head = ['Code', 'Text', 'Release', 'Patch', 'Rollback', 'Parsed'];
  return [messagesIntro, table(head, rows), messagesOutro].join('\n\n');
}

export async function errorsPage(): Promise<string> {
  return formatPage(
    'Errors and codes',
    'src/lib/errors.ts, src/http/errors.ts, src/soap/faults.ts, src/rest/openapi/errors.ts and src/upgrades/planning/messages.ts',
    intro,
    errorsPart(),
    messagesPart(await findCodes()),
  );
}
