/** Scripts for a node that print the pids of processes of one of its pods. */

/** Of the product's program; without it the sandbox stays. @param uid of the pod */
export function programOf(uid: string): string {
  return `
    ${findCgroups(uid)}
    programs=$(grep -ls /app/main.js /dev/null \${in_pod//cgroup/cmdline}) || true
    echo \${programs//\\/cmdline/}`;
}

/** Of all containers, with that of the sandbox. @param uid of the pod */
export function processesOf(uid: string): string {
  return `
    ${findCgroups(uid)}
    echo \${in_pod//\\/cgroup/}`;
}

/**
 * One grep reads the files of all processes: on a busy emulated node one for each takes half a minute. It fails over
 * those that end meanwhile.
 */
function findCgroups(uid: string): string {
  return `cd /proc
    in_pod=$(grep -ls 'pod${uid.replaceAll("-", "[-_]")}' [0-9]*/cgroup) || true`;
}
