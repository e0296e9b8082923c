import { EGRESS_LABEL, EGRESS_RESOURCE } from "@egress-nat/crds";
import { createTransport, hasCode, loadCredentials, type Transport } from "@egress-nat/kube";
import { TcpProxy } from "@egress-nat/kube/testing/tcp-proxy";
import { settingsFrom } from "@egress-nat/test/e2e/kit/settings";
import fc from "fast-check";
import { inject, test } from "vitest";
import { CHILD_RESOURCES, type ChildKind } from "./egress/children/index.ts";
import { Playground, silentLogger } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { caughtUp, expectAsFresh } from "./testing/fresh-outcome.ts";
import { collectGarbage, outcomeOf } from "./testing/outcome.ts";
import { RunningOperator } from "./testing/running-operator.ts";
import { type Upheaval, upheavals } from "./testing/upheaval.ts";

/** How many stories are told at a time: most of each is waiting. */
const SIDE_BY_SIDE = 5;

/** How many are drawn by each. */
const STORIES = settingsFrom(process.env).long ? 40 : 6;

const TIMEOUT_MS = STORIES * 50_000;

/**
 * One that does not come to its end in time has failed, with the seed and the story so far; the time leaves some for
 * that report.
 */
const LENGTH = {
  numRuns: STORIES,
  interruptAfterTimeLimit: 0.9 * TIMEOUT_MS,
  markInterruptAsFailure: true,
};

const BUDGET = { destinations: ["0.0.0.0/0"], podDisruptionBudget: { minAvailable: 1 } };

/** What chance rarely finds. */
const HARD_ONES: readonly (readonly Upheaval[])[] = [
  [
    { what: "write", egress: "one", spec: BUDGET },
    { what: "catch up" },
    { what: "stop operator" },
    {
      what: "edit",
      egress: "one",
      child: "disruptionBudget",
      patch: { metadata: { labels: { [EGRESS_LABEL]: null } } },
    },
    { what: "write", egress: "one", spec: { destinations: BUDGET.destinations } },
  ],
  [
    { what: "write", egress: "one", spec: BUDGET },
    { what: "catch up" },
    { what: "cut" },
    { what: "delete", egress: "one" },
    { what: "write", egress: "one", spec: BUDGET },
    { what: "edit", egress: "one", child: "service", patch: { metadata: { ownerReferences: null } } },
  ],
];

/** A namespace, and an operator that comes and goes behind a connection that breaks. */
class Scene implements AsyncDisposable {
  readonly play: Playground;
  readonly #proxy: TcpProxy;
  readonly #transport: Transport;
  #operator: RunningOperator | undefined;
  #isCut = false;

  private constructor(play: Playground, proxy: TcpProxy, transport: Transport) {
    this.play = play;
    this.#proxy = proxy;
    this.#transport = transport;
  }

  static async open(): Promise<Scene> {
    const play = await Playground.create(inject("kubeconfig"));
    const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
    const proxy = await TcpProxy.to(credentials.server);
    const transport = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
    return new Scene(play, proxy, transport);
  }

  async perform(upheaval: Upheaval): Promise<void> {
    const { play } = this;
    switch (upheaval.what) {
      case "write":
        return play.writeEgress(upheaval.egress, upheaval.spec);
      case "delete":
        return ifThere(play.deleteEgress(upheaval.egress));
      case "collect":
        return collectGarbage(play);
      case "edit":
        return ifThere(play.patch(CHILD_RESOURCES[upheaval.child], upheaval.egress, upheaval.patch));
      case "delete child":
        return this.#deleteChild(upheaval.child, upheaval.egress);
      case "start operator":
        return this.#start();
      case "stop operator":
        return this.#stop();
      case "catch up":
        if (this.#operator !== undefined && !this.#isCut) await caughtUp(play);
        return;
      case "cut":
        this.#isCut = true;
        return this.#proxy.cut();
      case "restore":
        this.#isCut = false;
        return this.#proxy.restore();
    }
  }

  #start(): void {
    const { namespace } = this.play;
    this.#operator ??= RunningOperator.start(confinedTo(namespace, this.#transport), namespace);
  }

  async #stop(): Promise<void> {
    await this.#operator?.stop();
    this.#operator = undefined;
  }

  async #deleteChild(child: ChildKind, name: string): Promise<void> {
    const { children } = await outcomeOf(this.play);
    await ifThere(this.play.delete(CHILD_RESOURCES[child], name));
    // That a conflict is over is noticed when the Egress changes, or after half a minute.
    const touched = { metadata: { annotations: { touched: String(performance.now()) } } };
    if (children[`${child} ${name}`] === "foreign")
      await ifThere(this.play.patch(EGRESS_RESOURCE, name, touched));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    this.#transport.close();
    this.play.transport.close();
    await this.#proxy[Symbol.asyncDispose]();
  }
}

async function ifThere(change: Promise<unknown>): Promise<void> {
  await change.catch((error: unknown) => {
    if (!hasCode(error, "NotFound")) throw error;
  });
}

async function tell(story: readonly Upheaval[]): Promise<void> {
  await using scene = await Scene.open();
  await scene.perform({ what: "start operator" });
  for (const upheaval of story) await scene.perform(upheaval);
  await scene.perform({ what: "restore" });
  await scene.perform({ what: "start operator" });

  await expectAsFresh(scene.play);
}

test("whatever happens, the end is what a fresh start makes of the last state", {
  timeout: TIMEOUT_MS,
}, async () => {
  const tellers = Array.from({ length: SIDE_BY_SIDE }, (_, index) => {
    const examples = index === 0 ? HARD_ONES.map((story): [readonly Upheaval[]] => [story]) : [];
    return fc.assert(fc.asyncProperty(upheavals, tell), { ...LENGTH, examples });
  });
  // None goes on when another has failed.
  await Promise.allSettled(tellers);
  await Promise.all(tellers);
});
