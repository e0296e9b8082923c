/** Asks a gateway why it is not ready. What answers may be anybody: little is read of it, and nothing is believed. */

import { get, type IncomingMessage } from "node:http";
import { HEALTH_PORTS, OPERATOR } from "@egress-nat/crds";
import { Deadline } from "@egress-nat/kube";

const TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 1024;
const MAX_HEADER_BYTES = 4096;
const MAX_REASON_LENGTH = 512;

const NOT_READY = 503;

/**
 * @param address of the pod
 * @param signal aborts the question
 * @param port the health port of gateways, but in tests
 * @returns the reasons in its answer, in one line of printable text; empty where it says that it is ready, or nothing that
 *   could be shown; undefined where it does not answer
 */
export async function askWhyNotReady(
  address: string,
  signal: AbortSignal,
  port: number = HEALTH_PORTS.egressPod,
): Promise<string | undefined> {
  using deadline = new Deadline(TIMEOUT_MS, signal);
  try {
    return reasonIn(await answerOf(address, port, deadline.signal));
  } catch {
    // Of a gateway that does not answer nothing is known but that it is not ready.
    return undefined;
  }
}

/** @returns an empty text where the answer is another one than "not ready" */
async function answerOf(address: string, port: number, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = get(
    {
      ...{ host: address, port, path: "/readyz", signal, agent: false, maxHeaderSize: MAX_HEADER_BYTES },
      headers: { "user-agent": OPERATOR },
    },
    resolve,
  )
    .on("error", reject)
    // Of an answer that changes the protocol nothing else tells (https://nodejs.org/api/http.html#event-upgrade).
    .on("close", () => reject(new Error("the connection was closed without an answer")));
  try {
    const response = await promise;
    const isText = response.headers["content-type"]?.startsWith("text/plain") ?? false;
    return response.statusCode === NOT_READY && isText ? await beginningOf(response) : "";
  } finally {
    request.destroy();
  }
}

async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_ANSWER_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString();
}

function reasonIn(answer: string): string {
  return (
    answer
      .split("\n")
      // Control characters, marks that turn text around, and what is not UTF-8.
      .map((line) => line.replace(/[\p{C}\p{Zl}\p{Zp}\uFFFD]+/gu, " ").trim())
      .filter((line) => line !== "")
      .join("; ")
      .slice(0, MAX_REASON_LENGTH)
  );
}
