// Checks the answers and deliveries of a server in a process of its own. It is part of the bundle that
// `startProcess` starts; a process from another build loads it with `node --import`. A wrong delivery ends the
// process: an error in a subscriber is an uncaught exception.
import './check-answers.js';
import { checkSentDeliveries } from './check-deliveries.js';

checkSentDeliveries();
