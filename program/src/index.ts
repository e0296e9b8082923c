/** What every program of the project needs: logger, configuration, health and metrics endpoints, signals. */

export { ConfigurationError, OwnPod, parseEnvironment } from "./environment.ts";
export { type Check, HealthServer, type HealthServerOptions } from "./health-server.ts";
export { createLogger, LOG_LEVEL, type Logger, type LoggerOptions } from "./logger.ts";
export { observeGauge, type Sample } from "./observed-gauge.ts";
export { createRegistry } from "./registry.ts";
export { type Program, type ProgramContext, runProgram } from "./run-program.ts";
