import { SETNS } from "./netns.ts";
import { openShell, type Shell } from "./shell.ts";

/**
 * Waits for the file of a network namespace, on a line of standard input, enters it, and becomes a shell that reads the
 * rest: byte by byte, because that is the shell's. In Perl, as the watch is (ADR 0026).
 *
 * Arguments: number of setns(2), the shell.
 */
const PROGRAM = String.raw`
use strict;
use warnings;
use constant { CLONE_NEWNET => 0x40000000 };
my ($setns, @shell) = @ARGV;
my ($name, $netns) = ('');
until ($name =~ s/\n$//) { sysread STDIN, $name, 1, length $name or exit }
open $netns, '<', $name and syscall($setns, fileno $netns, CLONE_NEWNET) == 0 or die "cannot enter $name: $!\n";
exec @shell;
`;

/** How long the next one is put off: whoever has just used one has something to do that somebody waits for. */
const REFILL_MS = 1_000;

/**
 * A process that is there already, for whoever has no time to start one: to start `nsenter` and a shell takes as long as
 * the commands that it is for.
 */
export class SpareShell {
  #spare: Shell | undefined;
  #refill: NodeJS.Timeout | undefined;

  constructor() {
    this.#start();
  }

  /**
   * Takes it, and has another one started a second later.
   *
   * @param netnsPath the network namespace to enter; needs CAP_SYS_ADMIN (setns(2))
   * @returns undefined where the other one is not there yet
   */
  take(netnsPath: string): Shell | undefined {
    const spare = this.#spare;
    if (spare === undefined) return undefined;
    this.#spare = undefined;
    this.#refill = setTimeout(() => this.#start(), REFILL_MS).unref();
    let netns = `${netnsPath}\n`;
    return {
      run: (script, end) => {
        const whole = netns + script;
        netns = "";
        return spare.run(whole, end);
      },
      close: () => spare.close(),
    };
  }

  /** Lets it end. */
  close(): void {
    clearTimeout(this.#refill);
    this.#spare?.close();
    this.#spare = undefined;
  }

  #start(): void {
    this.#spare = openShell("perl", ["-e", PROGRAM, "--", SETNS, "sh", "-s"]);
  }
}
