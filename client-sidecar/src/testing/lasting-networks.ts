import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClientConfig } from "@egress-nat/founat";
import type { Look } from "../client/networks.ts";
import { FakeNetworks } from "./fake-networks.ts";

/**
 * Network namespaces that outlive the agent, as those of a kernel do. Each is a file: what it was told to be is in it,
 * and gone with it.
 */
export class LastingNetworks extends FakeNetworks {
  /** @param directory of the namespaces */
  constructor(directory: string) {
    super();
    for (const netns of readdirSync(directory).map((name) => join(directory, name))) {
      const config = setUpIn(netns);
      if (config !== undefined) this.applied.set(netns, config);
    }
  }

  override async apply(netns: string, config: ClientConfig): Promise<Look | undefined> {
    const repair = await super.apply(netns, config);
    this.#save(netns);
    return repair;
  }

  override async remove(netns: string, isFree: () => boolean, uplink?: string): Promise<boolean> {
    const isOver = await super.remove(netns, isFree, uplink);
    this.#save(netns);
    return isOver;
  }

  override async exists(netns: string): Promise<boolean> {
    return existsSync(netns);
  }

  #save(netns: string): void {
    const config = this.applied.get(netns);
    const content = config === undefined ? "" : JSON.stringify(config);
    // An agent that is killed while it writes leaves an empty file. A kernel does not lose what only was to stay.
    if (existsSync(netns) && readFileSync(netns, "utf8") !== content) writeFileSync(netns, content);
  }
}

/** @returns what a namespace was told to be; undefined where that is nothing, or the namespace is gone */
export function setUpIn(netns: string): ClientConfig | undefined {
  const content = existsSync(netns) ? readFileSync(netns, "utf8") : "";
  return content === "" ? undefined : JSON.parse(content);
}
