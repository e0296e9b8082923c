import { EgressClientSlice } from "@egress-nat/crds";
import { KubeError } from "@egress-nat/kube";

/** An apiserver that keeps one slice, and answers when it is told to. */
export class FakeSliceApi {
  slice: EgressClientSlice | undefined;
  writes = 0;
  failure: Error | undefined;
  answerIsLost = false;
  #gate: PromiseWithResolvers<void> | undefined;

  hold(): () => void {
    this.#gate = Promise.withResolvers<void>();
    return this.#gate.resolve;
  }

  async apply(desired: object): Promise<EgressClientSlice> {
    this.writes++;
    await this.#gate?.promise;
    if (this.failure !== undefined) throw this.failure;
    const { uid = `uid-${this.writes}`, generation = 0 } = this.slice?.metadata ?? {};
    const { metadata, ...rest } = desired as EgressClientSlice;
    const own = { uid, generation: generation + 1, resourceVersion: String(this.writes) };
    this.slice = EgressClientSlice.parse({ ...rest, metadata: { ...metadata, ...own } });
    if (this.answerIsLost) throw new Error("answer was lost");
    return this.slice;
  }

  async delete(): Promise<void> {
    this.writes++;
    if (this.slice === undefined) throw new KubeError("not found", { code: "NotFound", retryable: false });
    this.slice = undefined;
  }
}
