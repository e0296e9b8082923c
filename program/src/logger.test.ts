import { expect, test } from "vitest";
import { z } from "zod";
import { createLogger, type LoggerOptions } from "./logger.ts";

function logged(options: Omit<LoggerOptions, "name" | "stream">): string[] {
  const lines: string[] = [];
  const stream = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ name: "gardener", stream, ...options });
  logger.debug({ bed: "a" }, "looking");
  logger.info({ bed: "a", err: new Error("dry") }, "watered");
  return lines;
}

test("a line is an object with level, time, program and what belongs to the message", () => {
  const [line = "", ...others] = logged({ level: "info" });
  expect(others).toEqual([]);
  expect(JSON.parse(line)).toMatchObject({
    level: "info",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    name: "gardener",
    bed: "a",
    msg: "watered",
    err: { type: "Error", message: "dry" },
  });
});

test("an error says its cause; where in the code it was is told of those that nobody expected", () => {
  const lines: string[] = [];
  const logger = createLogger({ name: "gardener", stream: { write: (line) => void lines.push(line) } });
  const cause = new Error("the well is dry");
  logger.error({ err: Object.assign(new Error("no water", { cause }), { code: "Dry" }) }, "not watered");
  logger.error({ err: new TypeError("bed is not a function", { cause }) }, "not watered");
  logger.error({ err: "rain" }, "not watered");
  for (const parse of [() => JSON.parse("{"), () => z.string().parse(1)]) {
    try {
      parse();
    } catch (err) {
      logger.error({ err }, "not watered");
    }
  }
  const [expected, unexpected, thrown, ...ofData] = lines.map((line): { err: unknown } => JSON.parse(line));
  expect(expected?.err).toEqual({ type: "Error", message: "no water: the well is dry", code: "Dry" });
  expect(unexpected?.err).toMatchObject({
    type: "TypeError",
    message: "bed is not a function: the well is dry",
    stack: expect.stringContaining("logger.test.ts"),
  });
  expect(thrown?.err).toBe("rain");
  expect(ofData).toMatchObject([
    { err: { type: "SyntaxError", message: expect.stringContaining("JSON") } },
    { err: { type: "ZodError", message: expect.stringContaining("expected string") } },
  ]);
  for (const { err } of ofData) expect(err).not.toHaveProperty("stack");
});

test("the level decides what is written; a level that does not exist is info", () => {
  expect(logged({ level: "debug" })).toHaveLength(2);
  expect(logged({ level: "silent" })).toHaveLength(0);
  expect(logged({ level: "verbose" })).toHaveLength(1);
});
