// What the benches share: a figure out of many, and telling it.

const inOrder = (numbers) => [...numbers].sort((a, b) => a - b);

export const median = (numbers) => inOrder(numbers)[Math.floor(numbers.length / 2)];

export const p99 = (numbers) => inOrder(numbers)[Math.ceil(numbers.length * 0.99) - 1];

export const tell = (line) => process.stdout.write(`${line}\n`);
