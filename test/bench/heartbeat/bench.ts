import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { HeartbeatProber } from "@egress-nat/founat";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { execa } from "execa";
import { withFolder } from "../folder.ts";
import { progress } from "../progress.ts";
import { medianOf, type Report, type Series } from "../report.ts";

const NODES = 1_000;
const BEAT_MS = 200;
/** So many nodes ask at once that all have asked after {@link BEAT_MS}. */
const TICK_MS = 5;

/** Of one core. */
const LIMIT = { atMost: 10 };

/** What it costs a gateway to answer the heartbeats of many nodes. */
export async function benchHeartbeat(rounds: number): Promise<Report> {
  const nodes = await Promise.all(Array.from({ length: NODES }, (_, index) => nodeAt(index)));
  try {
    return await withFolder((folder) => measure(nodes, folder, rounds));
  } finally {
    for (const node of nodes) node.close();
  }
}

async function measure(nodes: readonly Socket[], folder: string, rounds: number): Promise<Report> {
  await bundleProgram(join(import.meta.dirname, "responder-part.ts"), folder);
  progress(`${NODES} nodes ask a gateway, ${rounds} rounds of 10 s`);
  const responder = execa(process.execPath, [join(folder, "main.js"), `${rounds}`]);
  const lines = createInterface({ input: responder.stdout });
  const [port] = (await once(lines, "line")).map(Number);
  const samples: number[] = [];
  lines.on("line", (line) => samples.push(Number(line)));
  const stop = startAsking(nodes, port ?? 0, await heartbeatRequest());
  await responder.finally(stop);
  const cost: Series = { name: `CPU of answers to ${NODES} nodes, of one core`, unit: "%", samples };
  const { asked, answered } = stop();
  return {
    bench: "heartbeat",
    setup: `on this machine, every ${BEAT_MS} ms; ${answered} of ${asked} requests were answered`,
    series: [cost],
    targets: [medianOf(cost, LIMIT)],
  };
}

/** A socket with an address of its own. */
async function nodeAt(index: number): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, `127.1.${Math.floor(index / 250)}.${(index % 250) + 1}`);
  await once(socket, "listening");
  return socket;
}

/** As agents send it. */
async function heartbeatRequest(): Promise<Buffer> {
  const listener = createSocket("udp4").bind(0, "127.0.0.1");
  await once(listener, "listening");
  const prober = new HeartbeatProber();
  const asking = prober.probe("127.0.0.1", listener.address().port, [], { timeoutMs: 1 });
  const [request] = await once(listener, "message");
  await asking;
  await prober.close();
  listener.close();
  return request;
}

/** @returns what ends it, and says how many were sent and came back */
function startAsking(nodes: readonly Socket[], port: number, request: Buffer) {
  let [asked, answered, ticks] = [0, 0, 0];
  for (const node of nodes) node.on("message", () => (answered += 1));
  const startedAt = performance.now();
  const perTick = (NODES * TICK_MS) / BEAT_MS;
  const timer = setInterval(() => {
    const due = Math.floor((performance.now() - startedAt) / TICK_MS);
    for (; ticks < due; ticks += 1) {
      for (let index = 0; index < perTick; index += 1) {
        nodes[(ticks * perTick + index) % NODES]?.send(request, port, "127.0.0.1", () => undefined);
        asked += 1;
      }
    }
  }, TICK_MS);
  return () => {
    clearInterval(timer);
    return { asked, answered };
  };
}
