// usage: node tools/fill-lock.mjs [LOCK FILE]
// Adds the optional platform packages that are missing from package-lock.json.
//
// A registry mirror may not carry the packages built for other platforms. `npm install` then leaves them out of
// the lock file, and `npm ci` refuses that file ("Missing: ... from lock file"), there and everywhere else.
// Run it after each change of a dependency. Plain JavaScript: `npm ci` is what it has to make possible.
import { readFileSync, writeFileSync } from "node:fs";

const OPERATING_SYSTEMS = new Set(
  "aix android darwin freebsd linux netbsd openbsd openharmony sunos wasm32 win32".split(" "),
);
const PROCESSORS = new Set("arm arm64 ia32 loong64 mips64el ppc64 riscv64 s390x x64".split(" "));

const file = process.argv[2] ?? "package-lock.json";
const lock = JSON.parse(readFileSync(file, "utf8"));
const added = missingPlatformPackages(lock.packages);
const packages = { ...lock.packages, ...added };
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${file}: added ${Object.keys(added).length} platform packages`);

function missingPlatformPackages(packages) {
  const missing = {};
  for (const [path, parent] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
      if (packages[`${path}/node_modules/${name}`] || packages[`node_modules/${name}`]) continue;
      const platform = platformOf(name);
      if (platform === undefined) continue;
      missing[`node_modules/${name}`] = {
        version,
        ...platform,
        optional: true,
        ...(parent.dev && { dev: true }),
      };
    }
  }
  return missing;
}

/** What npm reads from a package's own manifest, told from its name; undefined for a package of every platform. */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const os = words.find((word) => OPERATING_SYSTEMS.has(word));
  if (os === undefined) return undefined;
  const cpu = words.find((word) => PROCESSORS.has(word));
  const libc = os === "linux" ? /-(gnu|musl)\w*$/.exec(name)?.[1] : undefined;
  return {
    os: [os],
    ...(cpu && { cpu: [cpu] }),
    ...(libc && { libc: [libc === "musl" ? "musl" : "glibc"] }),
  };
}
