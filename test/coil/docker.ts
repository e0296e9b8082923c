/** What the suite asks of docker: to run a command on a node of its kind cluster, which is one of ours. */

import { Cluster } from "../bed/cluster/cluster.ts";
import { startCommand } from "../bed/vm/exec-channel.ts";
import { COIL, NODE_NAMES } from "./names.ts";

const [verb, wanted, ...argv] = process.argv.slice(2);
if (verb !== "exec" || wanted === undefined) throw new Error("only docker exec NODE COMMAND is known");
const cluster = await Cluster.open(COIL);
const node = cluster.node(Object.keys(NODE_NAMES).find((name) => NODE_NAMES[name] === wanted) ?? wanted);
const command = startCommand(node.machine.execSocket, argv, {}, (stream, data) =>
  process[stream].write(data),
);
command.endInput();
process.exitCode = (await command.ended).exitCode;
