// The error responses of the fake API server: messages and Status objects like those of the real one.
import { type Resource, titleOf } from './resources.ts';

export type Status = {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: object;
  status: 'Failure' | 'Success';
  message?: string;
  reason?: string;
  details?: object;
  code: number;
};

export class StatusError extends Error {
  readonly code: number;
  readonly body: Status;

  constructor(code: number, reason: string, message: string, details?: object) {
    super(message);
    this.code = code;
    this.body = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      reason,
      ...(details === undefined ? {} : { details }),
      code,
    };
  }
}

const detailsOf = (resource: Resource, name: string) => ({
  ...(name === '' ? {} : { name }),
  ...(resource.group === '' ? {} : { group: resource.group }),
  kind: resource.name,
});

export const notFound = (resource: Resource, name: string) =>
  new StatusError(404, 'NotFound', `${titleOf(resource)} "${name}" not found`, detailsOf(resource, name));

export const noSuchPath = () =>
  new StatusError(404, 'NotFound', 'the server could not find the requested resource', {});

export const alreadyExists = (resource: Resource, name: string) =>
  new StatusError(
    409,
    'AlreadyExists',
    `${titleOf(resource)} "${name}" already exists`,
    detailsOf(resource, name),
  );

export const conflict = (
  resource: Resource,
  name: string,
  why = 'the object has been modified; please apply your changes to the latest version and try again',
) =>
  new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${titleOf(resource)} "${name}": ${why}`,
    detailsOf(resource, name),
  );

export const badRequest = (message: string) => new StatusError(400, 'BadRequest', message);

export const forbidden = (resource: Resource, name: string, why: string) =>
  new StatusError(
    403,
    'Forbidden',
    `${titleOf(resource)}${name === '' ? '' : ` "${name}"`} is forbidden: ${why}`,
    detailsOf(resource, name),
  );

const causes: [RegExp, string][] = [
  [/^Required/, 'FieldValueRequired'],
  [/^Duplicate/, 'FieldValueDuplicate'],
  [/^Forbidden/, 'FieldValueForbidden'],
];

const causeOf = (why: string) => causes.find(([form]) => form.test(why))?.[1] ?? 'FieldValueInvalid';

/** A problem of one field: `spec.selector: Required value`. */
export const invalid = (resource: Resource, name: string, field: string, why: string) =>
  new StatusError(
    422,
    'Invalid',
    `${resource.kind}${resource.group === '' ? '' : `.${resource.group}`} "${name}" is invalid: ${field}: ${why}`,
    {
      ...detailsOf(resource, name),
      kind: resource.kind,
      causes: [{ reason: causeOf(why), message: why, field }],
    },
  );

/** A patch that cannot be applied. */
export const unprocessable = (why: string) =>
  new StatusError(422, 'Invalid', ` "" is invalid: patch: Invalid value: ${why}`);

export const unsupportedMediaType = (accepted: string[]) =>
  new StatusError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );

export const methodNotAllowed = () =>
  new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
