import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { KubeError } from "../error.ts";
import { CONFIG_MAP_RESOURCE } from "../objects/resource.ts";
import { ConfigMap } from "../testing/config-maps.ts";
import { FakeTransport, failure, page, watch } from "../testing/fake-transport.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { Reflector } from "./reflector.ts";
import type { ReflectorEvent } from "./reflector-event.ts";
import { Store } from "./store.ts";

const map = (name: string, resourceVersion: string, data: object = { v: resourceVersion }) => ({
  metadata: { namespace: "garden", name, uid: `uid-${name}`, resourceVersion },
  data,
});
const event = (type: string, object: object) => ({ type, object });
const bookmark = (resourceVersion: string) => event("BOOKMARK", { metadata: { resourceVersion } });
const gone = failure("Gone", 410);
const broken = failure("Unreachable");

let stop: AbortController;
let running: Promise<void>;
let store: Store<ConfigMap>;
let events: ReflectorEvent[];
let changes: string[];

beforeEach(() => {
  vi.useFakeTimers();
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await running;
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Runs a reflector against written answers for so long that every backoff is over. */
async function reflect(
  answers: ConstructorParameters<typeof FakeTransport>[0],
  forMs = 3_000,
  options: { mayBeUnserved?: boolean } = {},
) {
  const transport = new FakeTransport(answers);
  store = new Store();
  events = [];
  changes = [];
  store.onChange(({ type, object }) => changes.push(`${type} ${object.metadata.name}`));
  const reflector = new Reflector({
    transport,
    resource: CONFIG_MAP_RESOURCE,
    parse: (raw) => ConfigMap.parse(raw),
    store,
    logger: silentLogger,
    onEvent: (happened) => events.push(happened),
    ...options,
  });
  running = reflector.run(stop.signal);
  await vi.advanceTimersByTimeAsync(forMs);
  return { transport, reflector };
}

const names = () => events.map(({ type }) => type);

test("it lists, then watches from there", async () => {
  const { transport, reflector } = await reflect([
    page("5", [map("a", "3")]),
    watch([event("ADDED", map("b", "6")), event("DELETED", map("a", "7")), bookmark("9")], "lasts"),
  ]);
  await reflector.whenSynced();
  expect(transport.asked).toEqual(["list", "watch from 5"]);
  expect(names()).toEqual(["relist", "synced", "watching", "bookmark"]);
  expect(changes).toEqual(["added a", "added b", "deleted a"]);
  expect(reflector.state).toMatchObject({ phase: "watching", synced: true, resourceVersion: "9" });
});

test("of a resource that the apiserver does not serve there is nothing, until it does", async () => {
  const notServed = failure("NotFound", 404);
  const answers = [() => notServed, page("5", [map("a", "3")]), watch([], "lasts")];
  const { transport, reflector } = await reflect(answers, 3_000, { mayBeUnserved: true });
  expect(reflector.state).toMatchObject({ phase: "unserved", synced: true });
  expect(transport.asked).toEqual(["list"]);
  await vi.advanceTimersByTimeAsync(300_000);
  expect(transport.asked).toEqual(["list", "list", "watch from 5"]);
  expect(changes).toEqual(["added a"]);
});

test("a list in pages is one list", async () => {
  const { transport } = await reflect([
    page("5", [map("a", "3")], "more"),
    page("5", [map("b", "4")]),
    watch([], "lasts"),
  ]);
  expect(transport.asked).toEqual(["list", "list the rest", "watch from 5"]);
  expect(changes).toEqual(["added a", "added b"]);
});

test("pages that have expired are replaced by one long answer", async () => {
  const { transport } = await reflect([
    page("5", [map("a", "3")], "more"),
    () => gone,
    page("8", [map("b", "4")]),
    watch([], "lasts"),
  ]);
  expect(transport.asked).toEqual(["list", "list the rest", "list all at once", "watch from 8"]);
  expect(changes).toEqual(["added b"]);
});

test("a list that breaks in the middle changes nothing", async () => {
  const { transport } = await reflect([
    page("5", [map("a", "3"), map("b", "3")]),
    watch([event("ERROR", { code: 410, reason: "Expired" })], "lasts"),
    page("9", [map("a", "3")], "more"),
    () => broken,
    page("9", [map("a", "3"), map("b", "3")]),
    watch([], "lasts"),
  ]);
  expect(transport.asked.at(-1)).toBe("watch from 9");
  expect(changes).toEqual(["added a", "added b"]);
});

test("a broken watch goes on at the last bookmark, and nothing else is asked", async () => {
  const { transport } = await reflect([page("5", []), watch([bookmark("20")], broken), watch([], "lasts")]);
  expect(transport.asked).toEqual(["list", "watch from 5", "watch from 20"]);
  expect(transport.comparisons).toBe(0);
  expect(names()).toEqual([
    "relist",
    "synced",
    "watching",
    "bookmark",
    "disconnected",
    "backoff",
    "watching",
  ]);
});

test("silence is told by its name, and is no reason to list again", async () => {
  await reflect([page("5", []), watch([], failure("Idle")), watch([], "lasts")]);
  expect(names()).toEqual(["relist", "synced", "watching", "idle", "watching"]);
});

test("silence of a watch that begins after what is the present now is a reason to list again", async () => {
  const { transport } = await reflect([
    page("5000", [map("a", "4000"), map("b", "4500")]),
    watch([], failure("Idle")),
    page(FakeTransport.NOW, [map("a", "30")]),
    watch([], "lasts"),
  ]);
  expect(transport.asked).toEqual(["list", "watch from 5000", "list", `watch from ${FakeTransport.NOW}`]);
  expect(names()).toEqual([
    ...["relist", "synced", "watching", "idle"],
    ...["rewound", "relist", "synced", "watching"],
  ]);
  expect(changes).toEqual(["added a", "added b", "deleted b", "updated a"]);
});

test("an apiserver that was away is asked which moment it is at, once, and goes on from where the watch was", async () => {
  const { transport } = await reflect([
    page("5", []),
    watch([bookmark("20")], broken),
    () => failure("ServiceUnavailable", 503),
    () => failure("TooManyRequests", 429),
    watch([bookmark("21")], broken),
    watch([], "lasts"),
  ]);
  expect(transport.asked).toEqual([
    ...["list", "watch from 5"],
    ...["watch from 20", "watch from 20", "watch from 20", "watch from 21"],
  ]);
  expect(transport.comparisons).toBe(1);
});

test("an apiserver that was away and comes back at an earlier moment is listed anew", async () => {
  const { transport } = await reflect([
    page("5000", [map("a", "4000")]),
    async function* () {},
    () => broken,
    page(FakeTransport.NOW, [map("a", "30")]),
    watch([], "lasts"),
  ]);
  expect(transport.asked.slice(-2)).toEqual(["list", `watch from ${FakeTransport.NOW}`]);
  expect(names()).toContain("rewound");
  expect(changes).toEqual(["added a", "updated a"]);
});

test("after a restore, an object whose version number was given out again is what it is now", async () => {
  await reflect([
    page("5000", [map("a", "1050", { v: "before" }), map("b", "30")]),
    watch([], failure("Idle")),
    () => broken,
    () => failure("Forbidden", 403),
    page("1100", [map("a", "1050", { v: "after" }), map("b", "30")]),
    watch([], "lasts"),
  ]);
  expect(store.get("garden/a")?.data).toEqual({ v: "after" });
  expect(changes).toEqual(["added a", "added b", "updated a"]);
});

test("history that has expired once is listed again at once, time and again with growing pauses", async () => {
  const expiring = [page("5", []), () => gone];
  await reflect([...expiring, ...expiring, ...expiring, ...expiring, ...expiring], 10_000);
  const delays = events.flatMap((happened) => (happened.type === "backoff" ? happened.delayMs : []));
  expect(names().slice(0, 4)).toEqual(["relist", "synced", "expired", "relist"]);
  expect(delays[2]).toBeGreaterThan(delays[0] ?? Number.POSITIVE_INFINITY);
});

test("what the apiserver refuses is asked again with growing pauses, and the store stays as it was", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0); // the shortest pauses: 0.1 s, then twice as long up to 7.5 s
  await reflect(
    [
      page("5", [map("a", "3")]),
      watch([bookmark("6")], failure("NotFound", 404)),
      ...Array.from({ length: 20 }, () => () => failure("NotFound", 404)),
    ],
    60_000,
  );
  expect(names()).toContain("refused");
  expect(store.size).toBe(1);
  expect(events.filter(({ type }) => type === "relist")).toHaveLength(14);
});

test("an apiserver that asked to wait is waited for", async () => {
  const busy: KubeError = failure("TooManyRequests", 429, 20_000);
  const { transport } = await reflect([page("5", []), () => busy, watch([], "lasts")], 19_000);
  expect(transport.asked).toEqual(["list", "watch from 5"]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(transport.asked).toEqual(["list", "watch from 5", "watch from 5"]);
});

test("a watch that ends as soon as it begins is not asked for without a pause", async () => {
  const ending = async function* () {};
  const { transport } = await reflect(
    [page("5", []), ...Array.from({ length: 100 }, () => () => ending())],
    10_000,
  );
  expect(transport.asked.length).toBeLessThan(15);
});

test("an object that cannot be understood keeps its former version, in a watch and in a list", async () => {
  const nonsense = (name: string, version: string) => map(name, version, { v: 1 });
  const { reflector } = await reflect([
    page("5", [map("a", "3"), nonsense("b", "4")]),
    watch(
      [event("MODIFIED", nonsense("a", "6")), event("ADDED", map("c", "7")), event("ERROR", { code: 410 })],
      "lasts",
    ),
    page("9", [nonsense("a", "8"), map("c", "7")]),
    watch([], "lasts"),
  ]);
  expect(changes).toEqual(["added a", "added c"]);
  expect(store.get("garden/a")?.data).toEqual({ v: "3" });
  expect(events.filter(({ type }) => type === "invalid")).toMatchObject([
    { key: "garden/b" },
    { key: "garden/a" },
    { key: "garden/a" },
  ]);
  expect(reflector.state.resourceVersion).toBe("9");
});

test("to wait for the first list ends with the one who waits", async () => {
  const { reflector } = await reflect([]);
  const impatient = new AbortController();
  const waiting = reflector.whenSynced(impatient.signal);
  impatient.abort(new Error("no more time"));
  await expect(waiting).rejects.toThrow("no more time");
  expect(reflector.state).toMatchObject({ phase: "waiting", synced: false });
});
