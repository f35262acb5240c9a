// The server of these tests. They do not name the kit's themselves, because whatever does runs once for each kind of store,
// and hostile input is met before any store is.
export { type Server, namespace, operationNames, password, startServer } from '../kit/server.ts';
