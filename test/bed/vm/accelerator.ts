import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CACHE_FOLDER, exists } from "@egress-nat/tools/system/cache";
import { execa } from "execa";
import type { VirtualMachineKit } from "./kit.ts";

const PROBE_TIMEOUT_MS = 15_000;

/** QEMU's flags for a way to run a guest. */
export type Accelerator = readonly string[];

const KVM: Accelerator = ["-accel", "kvm", "-cpu", "host"];
// Programs that find AVX use it, and emulated it costs twice as much as what they do without (sha256: 9.8 s for 100 MB,
// 5.7 s without); a fifth level of page tables makes each walk longer; V8 guards its code with protection keys where
// there are any, and each switch of them empties the emulated TLB (node starts in two thirds of the time without); the
// fast string instructions (ERMS, FSRM) go byte by byte (clearing and copying pages takes a third of the time without);
// guarding user memory (SMAP) ends a translated block at each access to it.
const EMULATED_CPU = [
  "-cpu",
  "max,avx=off,avx2=off,la57=off,pku=off,erms=off,fsrm=off,smap=off,smep=off",
] as const;
const EMULATION: Accelerator = ["-accel", "tcg,thread=multi", ...EMULATED_CPU];
const EMULATION_BY_COUNT: Accelerator = [
  "-accel",
  "tcg,thread=single",
  "-icount",
  "shift=1",
  ...EMULATED_CPU,
];

/** Whether the guest's instructions are translated, and not run by the processor. */
export function isEmulation(accelerator: Accelerator): boolean {
  return accelerator !== KVM;
}

/**
 * The fastest way here: KVM where a stock kernel boots under it, else software emulation. /dev/kvm says little: inside
 * another virtual machine it may be there and hang a guest, so a boot is tried, with a time limit. The answer holds until
 * this machine boots again.
 *
 * @param countsInstructions see {@link VirtualMachineOptions.countsInstructions}
 */
export async function accelerator(kit: VirtualMachineKit, countsInstructions = false): Promise<Accelerator> {
  const emulation = countsInstructions ? EMULATION_BY_COUNT : EMULATION;
  if (!(await exists("/dev/kvm"))) return emulation;
  const bootId = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
  const answerFile = join(CACHE_FOLDER, "kvm-probe", bootId);
  const known = await readFile(answerFile, "utf8").catch(() => undefined);
  const works = known === undefined ? await bootsUnderKvm(kit) : known === "works";
  if (known === undefined) {
    await mkdir(join(CACHE_FOLDER, "kvm-probe"), { recursive: true });
    await writeFile(answerFile, works ? "works" : "fails");
  }
  return works ? KVM : emulation;
}

async function bootsUnderKvm(kit: VirtualMachineKit): Promise<boolean> {
  const { stdout } = await execa(
    "qemu-system-x86_64",
    [
      ...["-machine", "q35", ...KVM, "-smp", "2", "-m", "512M", "-nographic", "-no-reboot", "-nic", "none"],
      ...["-kernel", kit.kernel, "-initrd", kit.initrd, "-append", "console=ttyS0 panic=-1 VM_PROBE=1"],
    ],
    { timeout: PROBE_TIMEOUT_MS, killSignal: "SIGKILL", reject: false, stdin: "ignore" },
  );
  return stdout.includes("the kernel is up");
}
