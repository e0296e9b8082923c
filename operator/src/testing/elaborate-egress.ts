/** Everything in it that the API server spells in its own way: quantities, defaults, empty values, lists with keys. */
export const ELABORATE = {
  replicas: 2,
  podDisruptionBudget: { minAvailable: "50%" },
  strategy: { type: "Recreate" },
  template: {
    metadata: { labels: { team: "network" }, annotations: { note: "" } },
    spec: {
      tolerations: [{ operator: "Exists" }],
      securityContext: {},
      hostNetwork: false,
      volumes: [{ name: "scratch", emptyDir: { sizeLimit: "1024Mi" } }],
      initContainers: [{ name: "prepare", image: "prepare:1", command: [] }],
      containers: [
        {
          name: "egress",
          env: [
            { name: "EMPTY", value: "" },
            { name: "FULL", value: "1" },
          ],
          resources: { limits: { cpu: "1000m", memory: "1024Mi" }, requests: { cpu: 1 } },
          ports: [{ containerPort: 9000 }],
          volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
        },
        {
          name: "logger",
          image: "logger:1",
          stdin: false,
          lifecycle: { preStop: { sleep: { seconds: 5 } } },
        },
      ],
    },
  },
};
