import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { machine } from "./machine.ts";

test("a command's output, error output and exit code come back apart", async () => {
  expect(await machine.exec("echo out; echo err >&2; exit 3")).toEqual({
    stdout: "out\n",
    stderr: "err\n",
    exitCode: 3,
  });
});

test("a command reads the input that it is given, of any size", async () => {
  const input = "0123456789abcdef".repeat(65_536);
  expect(await machine.run(["wc", "-c"], { input })).toBe("1048576\n");
});

test("a command's input is a socket, as Node's child processes have it", async () => {
  expect(await machine.run(["stat", "-L", "-c", "%F", "/proc/self/fd/0"], { input: "x" })).toBe("socket\n");
});

test("commands run at the same time", async () => {
  // The first waits for what the second makes: one after the other they would never end.
  const [first] = await Promise.all([
    machine.run("until [ -e /run/made ]; do sleep 0.05; done; echo seen"),
    machine.run("touch /run/made"),
  ]);
  expect(first).toBe("seen\n");
});

test("a command that takes too long is killed with its children", async () => {
  await expect(machine.run("sleep 1000 & echo $! > /run/child; wait", { timeoutMs: 2000 })).rejects.toThrow(
    "no end after 2 s",
  );
  await machine.run("for i in $(seq 100); do kill -0 $(cat /run/child) || exit 0; sleep 0.05; done; exit 1");
});

test("the machine has the modules of the data path and the project's Node", async () => {
  const version = await machine.run(`
    ip fou add port 5555 ipproto 4
    ip link add fou4 type ipip local 192.0.2.1 encap fou encap-sport auto encap-dport 5555
    ip link del fou4
    ip fou del port 5555
    nft add table inet probe; nft delete table inet probe
    node --version`);
  expect(version).toBe(`${process.version}\n`);
});

test("the exec channel shows in no namespace but its own", async () => {
  expect(await machine.run("ls /sys/class/net | tr '\\n' ' '")).not.toContain("exec0");
});

test("what the host writes to the share is there in the machine", async () => {
  await writeFile(join(machine.share, "greeting"), "hello");
  expect(await machine.run(["cat", join(machine.share, "greeting")])).toBe("hello");
});
