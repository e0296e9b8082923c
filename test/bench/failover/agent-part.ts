import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { beatBy, Heartbeats } from "@egress-nat/client-sidecar";
import { type ClientConfig, HeartbeatProber, HeartbeatResponder } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { execa } from "execa";
import { type Gateway, gatewayAt, NAT, SteeredClients } from "../native/steered-clients.ts";

// `node main.js CLIENTS ROUNDS`: the part of a node agent that hears gateways and leads flows, so many clients for it, and
// three gateways, one of which is killed in each round. Prints JSON. `node main.js gateway ADDRESS`: what answers for a
// gateway until it is killed.

/** Any that is free: no other program is in this network namespace. */
const PORT = 5556;

if (process.argv[2] === "gateway") await answerFor(process.argv[3] ?? "");
else await measure(...(process.argv.slice(2).map(Number) as [number, number]));

async function answerFor(host: string): Promise<void> {
  process.on("disconnect", () => process.exit());
  await new HeartbeatResponder({ port: PORT, host, value: () => undefined }).listen();
  process.send?.("ready");
}

async function measure(count: number, rounds: number): Promise<void> {
  const named = [1, 2, 3].map(gatewayAt);
  const [victim, ...others] = named as [Gateway, ...Gateway[]];
  let falseAlarms = 0;
  const [address = ""] = victim.addresses;
  const lines = named.flatMap(({ addresses }) => addresses.map((each) => `address add ${each} dev lo\n`));
  await execa("ip", ["-batch", "-"], { input: ["link set lo up\n", ...lines].join("") });
  const configs = new Map<string, ClientConfig>();
  const waiting = new Set<() => void>();
  const prober = new HeartbeatProber();
  const clients: SteeredClients = new SteeredClients(
    count,
    () => named.map((gateway) => ({ ...gateway, pulse: heartbeats.pulse(gateway) })),
    (netns, config) => {
      configs.set(netns, config);
      for (const check of waiting) check();
    },
  );
  const heartbeats: Heartbeats = new Heartbeats({
    gateways: () => named.map(({ name, addresses }) => ({ egress: NAT, name, addresses })),
    beat: beatBy(prober, PORT),
    probe: (gateway) => clients.probe(gateway),
    onChange: () => {
      falseAlarms += others.filter((gateway) =>
        ["suspect", "dead"].includes(heartbeats.pulse(gateway)),
      ).length;
      clients.steer();
    },
    logger: createLogger({ name: "bench", level: "error" }),
  });
  /** Until it is true of what all clients follow. */
  const untilAll = (isTrue: (flows: string | undefined) => boolean) =>
    new Promise<void>((resolve) => {
      const check = () => {
        const all = [...configs.values()].map(({ egresses: [egress] }) => {
          const found = egress?.gateways.find(({ ipv4 }) => ipv4 === address);
          return found && (found.flows ?? "new");
        });
        if (all.length < count || !all.every(isTrue)) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });

  const ended = new AbortController();
  const processes = new Map<Gateway, ChildProcess>();
  const start = async (gateway: Gateway) => processes.set(gateway, await startGateway(gateway));
  for (const gateway of named) await start(gateway);
  const steeredMs: number[] = [];
  const endedMs: number[] = [];
  await clients.during(async () => {
    const beating = heartbeats.run(ended.signal);
    clients.steer();
    for (let round = 0; round < rounds; round += 1) {
      await untilAll((flows) => flows === "new");
      // Deaths come at any moment between two heartbeats.
      await new Promise((resolve) => setTimeout(resolve, 1_000 + 200 * Math.random()));
      const killedAt = performance.now();
      processes.get(victim)?.kill("SIGKILL");
      await untilAll((flows) => flows !== "new");
      steeredMs.push(performance.now() - killedAt);
      await untilAll((flows) => flows === undefined);
      endedMs.push(performance.now() - killedAt);
      await start(victim);
    }
    ended.abort();
    await beating;
  });
  for (const process of processes.values()) process.kill("SIGKILL");
  await prober.close();
  console.log(JSON.stringify({ steeredMs, endedMs, falseAlarms }));
}

async function startGateway({ addresses: [address = ""] }: Gateway): Promise<ChildProcess> {
  const started = fork(process.argv[1] ?? "", ["gateway", address]);
  await Promise.race([
    once(started, "message"),
    once(started, "exit").then(() => Promise.reject(new Error(`no gateway can be at ${address}`))),
  ]);
  return started;
}
