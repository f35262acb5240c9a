// Fails a test file when a server has sent an answer or a delivery that does not have the declared schema.
import { afterAll, expect } from 'vitest';
import { wrongAnswers } from './check-answers.js';
import { wrongDeliveries } from './check-deliveries.js';

afterAll(() => {
  expect([...wrongAnswers.splice(0), ...wrongDeliveries.splice(0)]).toEqual([]);
});
