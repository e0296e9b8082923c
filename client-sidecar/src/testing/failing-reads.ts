import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { onTestFinished } from "vitest";

/**
 * From now on one of the functions that open a file fails, as where a process has too many open.
 *
 * @returns ends that, as the end of the test does
 */
export function failReads(by: "readFileSync" | "readdirSync"): () => void {
  const original = fs[by];
  const put = (work: unknown) => {
    Object.assign(fs, { [by]: work });
    syncBuiltinESMExports();
  };
  const end = () => put(original);
  put(() => {
    throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  });
  onTestFinished(end);
  return end;
}
