import { createTransport, loadCredentials } from "@egress-nat/kube";
import type { GatewaySettings } from "@egress-nat/operator";
import { startApiserver } from "../../bed/api/control-plane.ts";
import type { ControlPlane } from "../../bed/cluster/control-plane.ts";
import { Cleanup } from "../cleanup.ts";
import { withFolder } from "../folder.ts";
import { progress } from "../progress.ts";
import type { Report } from "../report.ts";
import { measureChange } from "./change.ts";
import { OperatorProgram } from "./operator-process.ts";
import { Pod } from "./pod.ts";
import { logger, NAMESPACE, Population } from "./population.ts";
import { measureRestart } from "./restart.ts";
import { measureRollout } from "./rollout.ts";

const SETTINGS: GatewaySettings = {
  image: "registry.example/egress-nat-egress-pod:1.0",
  imagePullPolicy: "IfNotPresent",
  clusterRangesNamespace: NAMESPACE,
  logLevel: "info",
};

/** The operator's own program against a real apiserver without nodes and controllers: nothing else has a part in it. */
export function benchOperator(rounds: number): Promise<Report> {
  return withFolder(async (folder) => {
    progress("etcd and an apiserver start");
    const apiserver = await startApiserver(folder);
    await using _apiserver = new Cleanup(() => apiserver.stop());
    return await measure(apiserver, rounds);
  });
}

async function measure(apiserver: ControlPlane, rounds: number): Promise<Report> {
  const credentials = await loadCredentials({ kubeconfig: apiserver.kubeconfig });
  const transport = createTransport({ credentials, logger });
  try {
    using population = await Population.of(transport);
    const pod = await Pod.create(apiserver, transport);
    await using _pod = new Cleanup(() => pod.remove());
    const program = await OperatorProgram.build(apiserver, pod, {
      EGRESS_POD_IMAGE: SETTINGS.image,
      EGRESS_POD_IMAGE_PULL_POLICY: SETTINGS.imagePullPolicy,
      LOG_LEVEL: SETTINGS.logLevel,
      POD_NAMESPACE: NAMESPACE,
      POD_NAME: "operator-0",
    });
    // The next one begins with the 1,000 Egresses in sync that this one leaves.
    const rollout = await measureRollout(rounds, population, program, SETTINGS);
    const restart = await measureRestart(population, program);
    const change = await measureChange(population, program, SETTINGS);
    return {
      bench: "operator",
      setup: "1,000 Egresses in a real apiserver, the operator's program in a process of its own",
      series: [...rollout.series, ...restart.series, ...change.series],
      targets: [...rollout.targets, ...restart.targets, ...change.targets],
    };
  } finally {
    transport.close();
  }
}
