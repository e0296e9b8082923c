import type { EgressStatus } from "@egress-nat/crds";
import type { Announcement } from "./announcements.ts";
import type { ChildClient } from "./child-client.ts";
import type { GatewaySettings } from "./children/index.ts";
import type { LastingFailures } from "./lasting-failures.ts";
import type { Surroundings } from "./snapshot.ts";
import type { StoredEgress } from "./status.ts";
import type { UpgradeTurns } from "./upgrade-turns.ts";

/** What the reconciler of Egresses reads and writes beside its snapshot; all of it is injected. */
export interface EgressWorld {
  readonly settings: GatewaySettings;
  readonly children: Pick<ChildClient, "read" | "create" | "apply" | "adjust" | "delete">;
  readonly upgradeTurns: Pick<UpgradeTurns, "take" | "failure" | "failed" | "giveBack">;
  readonly lastingFailures: Pick<LastingFailures, "seen" | "interrupted" | "forget">;
  /** As it is when the children are written: a namespace may be revoked while a write takes its time. */
  surroundings(egress: StoredEgress): Surroundings;
  /** @throws KubeError Conflict where it is not this version of the Egress any more */
  writeStatus(egress: StoredEgress, status: EgressStatus, signal: AbortSignal): Promise<void>;
  announce(egress: StoredEgress, announcement: Announcement): void;
  /** RFC 3339. */
  now(): string;
}
