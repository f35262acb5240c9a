// The OpenAPI document of a server with default settings.
import { startServer } from '../../kit/server.ts';

export async function readOpenApi(): Promise<unknown> {
  const server = await startServer();
  const answer = await server.get('/admin/openapi.json');
  await server.close();
  return answer.json();
}
