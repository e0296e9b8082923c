declare module "prom-client/lib/metrics/*" {
  const collect: (registry: import("prom-client").Registry) => void;
  export default collect;
}
