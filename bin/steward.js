#!/usr/bin/env node
// The command `steward` of the package.
import '../dist/cli.js';
