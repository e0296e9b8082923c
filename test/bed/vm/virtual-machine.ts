import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { BackgroundProcess } from "../system/process.ts";
import { type Accelerator, accelerator, isEmulation } from "./accelerator.ts";
import { type ExecOptions, type ExecResult, exec, run } from "./exec-channel.ts";
import { GUEST_MODULES } from "./kernel-modules.ts";
import { type VirtualMachineKit, vmKit } from "./kit.ts";

/** It takes 10 to 20 seconds; now and then an emulated machine hangs before its kernel says a word. */
const BOOT_TIMEOUT_MS = 90_000;
const BOOT_ATTEMPTS = 3;
const CLOCK_CHECK_MS = 1_000;
const MAX_SOCKET_PATH_LENGTH = 107;

/** Processors, and whose clock they go by. */
export interface Processing {
  /**
   * Where it is emulated it has one all the same, unless {@link emulatesAllCpus} asks for them. The kernel patches its
   * own code (static keys), for instance whenever the last nftables rule set goes or the first one comes: another emulated
   * processor that runs that code meanwhile may keep what it had translated, and never get past it. And emulated
   * processors that wait for each other are slow.
   */
  readonly cpus: number;
  /** For what is about work at the same time. */
  readonly emulatesAllCpus?: boolean;
  /**
   * Where it is emulated, its clock counts what it executes, 2 ns for each instruction, so that what else runs on the host
   * does not show in its times; for one processor only (https://www.qemu.org/docs/master/devel/tcg-icount.html).
   */
  readonly countsInstructions?: boolean;
}

export interface VirtualMachineOptions extends Processing {
  /** Also its host name. */
  readonly name: string;
  /** State folder; several machines may share one. */
  readonly folder: string;
  readonly memoryMiB: number;
  readonly lifetime: "owner" | "detached";
  /** Path of the network namespace that holds the taps; absent: a new one that ends with the machine. */
  readonly netns?: string;
  /** Tap interfaces of that namespace, each a card of the machine. */
  readonly taps?: readonly Tap[];
  /** Raw disk images. What the machine writes to them is lost when it ends. */
  readonly disks?: readonly string[];
  /** Folders of the host, writable and uncached, at the same path in the machine. */
  readonly shares?: readonly string[];
  /** To boot it with, besides those that every machine has. */
  readonly kernelParameters?: readonly string[];
  /** TCP port on the namespace's loopback that leads to the exec server: one for each machine of a namespace. */
  readonly execPort?: number;
}

interface Tap {
  readonly name: string;
  readonly mac: string;
}

/**
 * A virtual machine with Debian's stock kernel. Its root is the host's, read-only, under a tmpfs that takes its own
 * changes: it has the host's programs at the host's paths. A file that the host changes after the machine has read it
 * stays old there; use a share or a new name.
 */
export class VirtualMachine {
  readonly name: string;
  /** Unix socket of the exec channel, for {@link exec}. */
  readonly execSocket: string;
  readonly #machine: BackgroundProcess;
  readonly #relay: BackgroundProcess;

  /** A machine that may have been started by an earlier program. */
  constructor(folder: string, name: string) {
    this.name = name;
    this.execSocket = join(folder, "run", `${name}.sock`);
    this.#machine = new BackgroundProcess(folder, name);
    this.#relay = new BackgroundProcess(folder, `${name}-exec`);
  }

  /** Boots a machine; it runs commands when this returns. */
  static async start(options: VirtualMachineOptions): Promise<VirtualMachine> {
    const machine = new VirtualMachine(options.folder, options.name);
    if (machine.execSocket.length > MAX_SOCKET_PATH_LENGTH) {
      throw new ToolError(
        "path-too-long",
        `the path of a unix socket has at most ${MAX_SOCKET_PATH_LENGTH} characters: ${machine.execSocket}; ` +
          "use a state folder with a shorter path",
      );
    }
    await needCommands(["ip", "modprobe", "nsenter", "qemu-system-x86_64", "setpriv", "socat"]);
    const kit = await vmKit();
    const qemu = qemuCommand(options, kit, await accelerator(kit, options.countsInstructions));
    await rm(machine.#machine.logFile, { force: true });
    await mkdir(dirname(machine.execSocket), { recursive: true });
    for (let attempt = 1; ; attempt++) {
      try {
        await machine.#boot(options, qemu);
        return machine;
      } catch (error) {
        await machine.kill();
        if (attempt === BOOT_ATTEMPTS) throw error;
      }
    }
  }

  /** Whether it runs commands. */
  isRunning(): boolean {
    return this.pid() !== undefined && this.#relay.pid() !== undefined;
  }

  /** QEMU's pid while the machine runs. */
  pid(): number | undefined {
    return this.#machine.pid();
  }

  /** Runs a bash script, or a program and its arguments, to its end. */
  exec(command: string | readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return exec(this.execSocket, command, options);
  }

  /** As {@link exec}; throws when the command fails, else returns what it wrote to stdout. */
  run(command: string | readonly string[], options: ExecOptions = {}): Promise<string> {
    return run(this.execSocket, command, options);
  }

  /** Pulls the plug. */
  async kill(): Promise<void> {
    await Promise.all([this.#machine.kill(), this.#relay.kill()]);
    await rm(this.execSocket, { force: true });
  }

  async #boot(options: VirtualMachineOptions, qemu: readonly string[]): Promise<void> {
    await BackgroundProcess.start({
      name: options.name,
      folder: options.folder,
      lifetime: options.lifetime,
      netns: options.netns,
      command: options.netns === undefined ? inNetnsOfItsOwn(qemu) : qemu,
    });
    await this.#untilBooted();
    await this.#startRelay(options);
    if (!options.countsInstructions) await this.#checkClock();
  }

  /** On a busy host the kernel now and then takes an emulated TSC for many times slower than it is, and time runs away. */
  async #checkClock(): Promise<void> {
    const uptime = async () => Number((await this.run("cut -d' ' -f1 /proc/uptime")).trim()) * 1000;
    const [there, here] = [await uptime(), performance.now()];
    await sleep(CLOCK_CHECK_MS);
    const rate = ((await uptime()) - there) / (performance.now() - here);
    if (rate > 0.5 && rate < 2) return;
    throw new ToolError(
      "clock-wrong",
      `the clock of virtual machine ${this.name} runs ${rate.toFixed(1)} times as fast as that of its host`,
    );
  }

  async #untilBooted(): Promise<void> {
    await waitUntil(
      async () => {
        this.#machine.assertRunning();
        return (await this.#machine.log()).includes("exec-server is ready");
      },
      {
        what: `virtual machine ${this.name} to boot`,
        timeoutMs: BOOT_TIMEOUT_MS,
        intervalMs: 50,
        explain: () => this.#machine.failure("did not boot").message,
      },
    );
  }

  // QEMU forwards a TCP port of the namespace's loopback; the relay makes it a unix socket, which any program of the
  // host can reach, and only its owner.
  async #startRelay(options: VirtualMachineOptions): Promise<void> {
    await rm(this.execSocket, { force: true });
    await BackgroundProcess.start({
      name: `${options.name}-exec`,
      folder: options.folder,
      lifetime: options.lifetime,
      netns: options.netns ?? `/proc/${this.#machine.pid()}/ns/net`,
      command: [
        "socat",
        `UNIX-LISTEN:${this.execSocket},fork,mode=600`,
        `TCP:127.0.0.1:${options.execPort ?? DEFAULT_EXEC_PORT}`,
      ],
    });
    await waitUntil(() => this.run(["true"], { timeoutMs: 5000 }).then(() => true), {
      what: `the exec channel of ${this.name}`,
      timeoutMs: 20_000,
      intervalMs: 20,
    });
  }
}

const DEFAULT_EXEC_PORT = 7000;

function inNetnsOfItsOwn(command: readonly string[]): readonly string[] {
  return ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", ...command];
}

/** The QEMU command of a machine: plain data in, plain data out. */
function qemuCommand(
  options: VirtualMachineOptions,
  kit: VirtualMachineKit,
  accelerator: Accelerator,
): readonly string[] {
  const { taps = [], disks = [], shares = [], kernelParameters: given = [] } = options;
  const cpus = isEmulation(accelerator) && !options.emulatesAllCpus ? 1 : options.cpus;
  // Where there can be one processor only, QEMU before 8.1 leaves out the guest's memory barriers, although devices run
  // beside it: a network card then misses that it has something to send, and stands still for good. The guest knows of one.
  const [smp, parameters] = cpus === 1 ? ["1,maxcpus=2", ["nr_cpus=1"]] : [String(cpus), []];
  const share = (path: string, tag: string, flags: string): readonly string[] => [
    "-virtfs",
    `local,path=${path},mount_tag=${tag},id=${tag},security_model=none,multidevs=remap${flags}`,
  ];
  const environment = {
    VM_INIT: join(import.meta.dirname, "guest", "init.sh"),
    VM_KIT: kit.folder,
    VM_NAME: options.name,
    // The Node that runs this, for bundles of the project.
    VM_PATH: dirname(process.execPath),
    VM_SHARES: shares.map((path, index) => `share${index}=${path}`).join(" "),
    VM_MODULES: GUEST_MODULES.join(","),
  };
  // Left to itself the kernel distrusts the emulated TSC and reads the HPET, and each reading leaves the guest. Code at
  // random addresses is translated again in each process: so a start takes three times as long.
  const kernelParameters = [
    ...[
      "console=ttyS0",
      "quiet",
      "panic=-1",
      "mitigations=off",
      "net.ifnames=0",
      "tsc=reliable",
      "norandmaps",
    ],
    ...parameters,
    ...given,
    ...Object.entries(environment).map(([name, value]) => `"${name}=${value}"`),
  ];
  return [
    ...["qemu-system-x86_64", "-machine", "q35", ...accelerator, "-smp", smp],
    ...["-m", `${options.memoryMiB}M`, "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio"],
    ...["-kernel", kit.kernel, "-initrd", kit.initrd, "-append", kernelParameters.join(" ")],
    ...share("/", "root", ",readonly=on"),
    ...shares.flatMap((path, index) => share(path, `share${index}`, "")),
    ...disks.flatMap((file) => ["-drive", `file=${file},format=raw,if=virtio,snapshot=on`]),
    ...taps.flatMap((tap, index) => [
      ...["-netdev", `tap,id=tap${index},ifname=${tap.name},script=no,downscript=no`],
      ...["-device", `virtio-net-pci,netdev=tap${index},mac=${tap.mac},romfile=`],
    ]),
    // The last card, so that the taps are eth0 and so on.
    "-netdev",
    `user,id=exec,restrict=on,ipv6=off,net=198.18.255.0/24,` +
      `hostfwd=tcp:127.0.0.1:${options.execPort ?? DEFAULT_EXEC_PORT}-198.18.255.15:7000`,
    ...["-device", "virtio-net-pci,netdev=exec,mac=52:54:00:00:ff:01,romfile="],
  ];
}
