/** The CNI plugin: decides from the configuration whether the pod concerns this product, and if so asks the node agent. */

import { AGENT_SOCKET, CLIENT_ANNOTATION_PREFIX, RUN_DIRECTORY } from "@egress-nat/crds/names";
import { ClientError } from "../client/error.ts";
import { AGENT_REMEDY, heldAddress } from "../client/held-address.ts";
import { isLookalike } from "../client/lookalike.ts";
import { type Annotations, concerning } from "../client/opt-in.ts";
import type { PodReference } from "../client/pod.ts";
import { shortened } from "../records/record-id.ts";
import type { Attachment } from "../records/schema.ts";
import { StateFolder, type StateLocations } from "../records/state-folder.ts";
import { callAgent } from "./agent-call.ts";
import {
  configurationVersion,
  networkName,
  podAnnotations,
  previousResult,
  validAttachments,
} from "./configuration.ts";
import { CniError, CniErrorCode, cniErrorOf, messageOf } from "./error.ts";
import { host } from "./host.ts";
import {
  assertPath,
  type Command,
  parseContainerId,
  parseIfname,
  parseNetns,
  parsePod,
} from "./invocation.ts";
import type { JsonObject } from "./json.ts";
import type { AgentRequest } from "./protocol.ts";
import { assertVersion, CURRENT_VERSION, SUPPORTED_VERSIONS } from "./version.ts";

/** How long the agent has to answer. */
const TIMEOUTS_MS = {
  /** Above its own deadline for gateways, below the two minutes that kubelet gives the runtime. */
  add: 60_000,
  /** Beyond it the agent withdraws the addresses when it can. */
  delete: 5_000,
  check: 10_000,
  /** At once, or the pod starts without. */
  mention: 500,
};

/** One execution, by the CNI specification 1.1 (https://www.cni.dev/docs/spec/). */
export class Plugin {
  readonly #configuration: JsonObject;
  readonly #state: StateFolder;
  readonly #socketPath: string;

  /**
   * @param configuration of the network; DEL needs nothing from it but the network's name, where it is there
   * @param locations of the state shared with the agent, and of the agent's socket
   */
  constructor(configuration: JsonObject, locations: StateLocations) {
    this.#configuration = configuration;
    this.#state = new StateFolder(locations, host);
    this.#socketPath = `${locations.runDirectory}${AGENT_SOCKET.slice(RUN_DIRECTORY.length)}`;
  }

  /**
   * @returns what it says to the container runtime, where the command asks for it
   * @throws CniError
   */
  run(command: Command): JsonObject | undefined {
    if (command === "VERSION") {
      const { cniVersion = CURRENT_VERSION } = this.#configuration;
      return { cniVersion, supportedVersions: SUPPORTED_VERSIONS };
    }
    if (command === "DEL") return this.#end(this.#records());
    assertVersion(configurationVersion(this.#configuration), command);
    const network = networkName(this.#configuration);
    switch (command) {
      case "ADD":
        return this.#add(network);
      case "CHECK":
        return this.#check();
      case "GC":
        assertPath();
        return this.#collectGarbage(network);
      case "STATUS":
        return this.#status();
    }
  }

  #add(network: string): JsonObject {
    const containerId = parseContainerId();
    const netns = parseNetns();
    const ifname = parseIfname();
    const { value, addresses } = previousResult(this.#configuration);
    const pod = parsePod();
    const annotations = podAnnotations(this.#configuration);
    const held = heldAddress(this.#state, { network, containerId, ifname }, addresses);
    if (held !== undefined) throw cniErrorOf(new ClientError(held));
    const concerns = annotations === undefined ? undefined : concerning(annotations);
    if (concerns !== undefined && Object.keys(concerns).length === 0) {
      this.#mention(pod, annotations);
      return value;
    }
    if (pod === undefined) {
      if (concerns === undefined) return value; // no Kubernetes pod: nothing in it can opt in
      throw new CniError(
        CniErrorCode.invalidEnvironment,
        "CNI_ARGS does not name the pod (K8S_POD_NAMESPACE, K8S_POD_NAME), but its annotations ask for an Egress",
        "the container runtime sets it: containerd and CRI-O do",
      );
    }
    const request = { operation: "add", network, containerId, netns, ifname, pod, addresses } as const;
    const what = concerns === undefined ? "may be" : "is";
    const why = `pod ${pod.namespace}/${pod.name} ${what} a client or gateway of an Egress`;
    this.#ask(concerns === undefined ? request : { ...request, annotations: concerns }, TIMEOUTS_MS.add, why);
    this.#mention(pod, annotations);
    return value;
  }

  /** No pod is held up by it: an agent that does not answer says nothing. */
  #mention(pod: PodReference | undefined, annotations: Annotations = {}): void {
    const keys = Object.keys(annotations).filter(isLookalike);
    if (pod === undefined || keys.length === 0) return;
    try {
      callAgent(this.#socketPath, { operation: "mention", pod, keys }, TIMEOUTS_MS.mention);
    } catch {
      // It will be told of the next such pod.
    }
  }

  /** Where the agent does not do it, the records go, and the addresses stay out of use until it has withdrawn them. */
  #end(records: readonly string[]): undefined {
    if (records.length === 0) return;
    try {
      callAgent(this.#socketPath, { operation: "delete", records }, TIMEOUTS_MS.delete);
    } catch {
      this.#remove(records);
    }
  }

  /** All that can be removed are. @throws Error the first one of those that cannot */
  #remove(records: readonly string[]): void {
    const errors: unknown[] = [];
    for (const record of records) {
      try {
        this.#state.removeRecord(record);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  #check(): undefined {
    const netns = parseNetns();
    const { addresses } = previousResult(this.#configuration);
    const records = this.#records();
    if (!host.exists(netns)) {
      throw new CniError(
        CniErrorCode.unknownContainer,
        `there is no network namespace ${netns}`,
        "the container is gone: the container runtime has to detach it (DEL)",
      );
    }
    if (records.length === 0) this.#assertNoClient(addresses);
    for (const record of records) {
      const request = { operation: "check", record, netns, addresses } as const;
      this.#ask(request, TIMEOUTS_MS.check, "the pod is a client of an Egress");
    }
  }

  /** A pod that asks for an Egress, was given addresses and has no record is open: nothing guards it. */
  #assertNoClient(addresses: readonly string[]): void {
    const asked = Object.keys(podAnnotations(this.#configuration) ?? {}).find((key) =>
      key.startsWith(CLIENT_ANNOTATION_PREFIX),
    );
    if (asked === undefined || addresses.length === 0) return;
    throw new CniError(
      CniErrorCode.differs,
      `the pod asks for an Egress by its annotation ${asked}, but is not a client`,
      "annotations are read when a pod starts: recreate it",
    );
  }

  /** The clients of other networks are the business of their own GC. */
  #collectGarbage(network: string): undefined {
    const valid = validAttachments(this.#configuration);
    const stale = this.#state.recordIds().filter((id) => {
      const record = this.#state.attachment(id);
      return record.network === shortened(network) && !valid.some((kept) => mayBeSame(kept, record));
    });
    this.#end(stale);
  }

  /**
   * Ready without the agent: a failure makes the node NotReady, and with it holds up pods that need no agent. Where the
   * state of the node cannot be read no pod can be added, because nobody knows which addresses are free.
   */
  #status(): undefined {
    try {
      this.#state.trustedAddresses();
    } catch (error) {
      throw new CniError(
        CniErrorCode.notAvailable,
        `no pod can be added, because the state of egress-nat on this node cannot be read: ${messageOf(error)}`,
        "look at the folder that the message names, and at the node's disk",
      );
    }
  }

  /** Of the attachment that DEL or CHECK names. A configuration that names no network excludes none. */
  #records(): readonly string[] {
    const containerId = parseContainerId();
    const ifname = parseIfname();
    const { name: network } = this.#configuration;
    const named = { containerId, ifname, ...(typeof network === "string" && { network }) };
    return this.#state.recordIds().filter((id) => mayBeSame(this.#state.attachment(id), named));
  }

  #ask(request: AgentRequest, timeoutMs: number, why: string): void {
    try {
      callAgent(this.#socketPath, request, timeoutMs);
    } catch (error) {
      if (error instanceof CniError) throw error;
      throw new CniError(
        CniErrorCode.tryAgainLater,
        `${why}, but the node agent of egress-nat does not answer on ${this.#socketPath}: ${messageOf(error)}`,
        AGENT_REMEDY,
        { cause: error },
      );
    }
  }
}

/** Whether two descriptions may be of one attachment: nothing that both say of it differs. */
function mayBeSame(a: Partial<Attachment>, b: Partial<Attachment>): boolean {
  return (["network", "containerId", "ifname"] as const).every(
    (key) => a[key] === undefined || b[key] === undefined || shortened(a[key]) === shortened(b[key]),
  );
}
