import { setTimeout as sleep } from "node:timers/promises";
import { HeartbeatResponder } from "@egress-nat/founat";

// `node main.js ROUNDS`: the part of a gateway that answers heartbeats. Prints its port, and then for each round what it
// has taken of a core, in percent.

const WINDOW_MS = 10_000;

const rounds = Number(process.argv[2]);
const responder = new HeartbeatResponder({ port: 0, value: () => undefined });
console.log(await responder.listen());
// Whoever asks is about to begin, and code that has not run yet is slower.
await sleep(WINDOW_MS);
for (let round = 0; round < rounds; round += 1) {
  const before = process.cpuUsage();
  await sleep(WINDOW_MS);
  const { user, system } = process.cpuUsage(before);
  console.log((100 * (user + system)) / 1e3 / WINDOW_MS);
}
await responder.close();
