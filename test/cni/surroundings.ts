import type { Surroundings } from "./cases/index.ts";

/**
 * Both pipes of a plugin do not block. It gets its configuration in two parts, and finds its stdout full, because nobody
 * reads before it has ended or filled it.
 */
const NON_BLOCKING_PIPES = `
import fcntl, os, subprocess, sys, threading, time
configuration = sys.stdin.buffer.read()
stdin, give = os.pipe()
take, stdout = os.pipe()
for end in stdin, stdout:
    fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_NONBLOCK)
plugin = subprocess.Popen(sys.argv[1:], stdin=stdin, stdout=stdout)
os.close(stdin)
os.close(stdout)
def write():
    half = len(configuration) // 2
    for part in configuration[:half], configuration[half:]:
        time.sleep(0.05)
        while part:
            part = part[os.write(give, part):]
    os.close(give)
threading.Thread(target=write).start()
time.sleep(0.3)
while chunk := os.read(take, 65536):
    sys.stdout.buffer.write(chunk)
    sys.stdout.flush()
    time.sleep(0.01)
sys.exit(plugin.wait())`;

const shell = (script: string) => ["sh", "-c", script, "sh"];

const STARTERS: Readonly<Record<Surroundings, readonly string[]>> = {
  "stdin is closed": shell(`exec "$@" <&-`),
  "stdin is a folder": shell(`exec "$@" </`),
  "pipes do not block": ["python3", "-c", NON_BLOCKING_PIPES],
  "the working directory is deleted": shell(`mkdir /run/$$ && cd /run/$$ && rmdir /run/$$ && exec "$@"`),
};

/** The command that starts a plugin in such surroundings. */
export function commandIn(surroundings: Surroundings | undefined, plugin: string): readonly string[] {
  return surroundings === undefined ? [plugin] : [...STARTERS[surroundings], plugin];
}
