/** All screens, and how the navigation groups them. */
import { accessScreen } from "./access.js";
import { auditScreen } from "./audit.js";
import { clusterScreen } from "./cluster.js";
import { containersScreen } from "./containers.js";
import { deployScreen, resetScreen } from "./deploy.js";
import { feedScreen } from "./feed.js";
import { indexesScreen } from "./indexes.js";
import { jobsScreen } from "./jobs.js";
import { limitsScreen } from "./limits.js";
import { loadsScreen } from "./loads.js";
import { logsScreen } from "./logs.js";
import { preferencesScreen } from "./preferences.js";
import { recordsScreen } from "./records.js";
import { rolesScreen } from "./roles.js";
import { schemaTextScreen } from "./schematext.js";
import { subscriptionsScreen } from "./subscriptions.js";
import { teamScreen } from "./team.js";
import { telemetryScreen } from "./telemetry.js";
import { typesScreen } from "./types.js";
import { usageScreen } from "./usage.js";
import { usersScreen } from "./users.js";
import { webhooksScreen } from "./webhooks.js";
import { zonesScreen } from "./zones.js";

/**
 * `asks`: what the screen asks for that not everybody may, as `denial` takes it.
 * @type {Record<string, {title: string, icon: string, show: () => any, needsContainer?: boolean, asks?: Parameters<typeof import("../core/session.js").denial>}>}
 */
export const screens = {
  containers: { title: "Containers", icon: "container", show: containersScreen },
  records: { title: "Records", icon: "records", show: recordsScreen, needsContainer: true },
  zones: { title: "Zones", icon: "zones", show: zonesScreen, needsContainer: true },
  feed: { title: "Change Feed", icon: "feed", show: feedScreen, needsContainer: true },
  subscriptions: { title: "Subscriptions", icon: "bell", show: subscriptionsScreen, needsContainer: true, asks: ["GET /admin/1/subscriptions", { inEnvironment: true }] },
  jobs: { title: "Jobs", icon: "job", show: jobsScreen, needsContainer: true },
  preferences: { title: "Preferences", icon: "preferences", show: preferencesScreen, needsContainer: true },
  types: { title: "Record Types", icon: "types", show: typesScreen, needsContainer: true },
  indexes: { title: "Indexes", icon: "index", show: indexesScreen, needsContainer: true },
  roles: { title: "Security Roles", icon: "role", show: rolesScreen, needsContainer: true },
  schema: { title: "Schema Text", icon: "text", show: schemaTextScreen, needsContainer: true },
  access: { title: "API Access", icon: "key", show: accessScreen, needsContainer: true, asks: ["GET /admin/1/tokens"] },
  webhooks: { title: "Webhooks", icon: "webhook", show: webhooksScreen, needsContainer: true, asks: ["GET /admin/1/webhooks", { inEnvironment: true }] },
  logs: { title: "Logs", icon: "log", show: logsScreen, needsContainer: true },
  telemetry: { title: "Telemetry", icon: "telemetry", show: telemetryScreen, needsContainer: true },
  usage: { title: "Usage", icon: "usage", show: usageScreen, needsContainer: true },
  limits: { title: "Limits", icon: "limit", show: limitsScreen, needsContainer: true },
  deploy: { title: "Deploy Schema Changes…", icon: "deploy", show: deployScreen, needsContainer: true, asks: ["POST /admin/1/schema/deploy"] },
  reset: { title: "Reset Environment…", icon: "reset", show: resetScreen, needsContainer: true, asks: ["POST /admin/1/schema/reset"] },
  users: { title: "Users", icon: "user", show: usersScreen, asks: ["GET /admin/1/users", { everywhere: true }] },
  audit: { title: "Audit", icon: "audit", show: auditScreen },
  cluster: { title: "Cluster", icon: "cluster", show: clusterScreen },
  loads: { title: "Load Tests", icon: "load", show: loadsScreen },
  team: { title: "Settings", icon: "settings", show: teamScreen, asks: ["GET /admin/1/administrators", { everywhere: true }] },
};

/** @type {{label: string, needsContainer: boolean, names: string[]}[]} */
export const groups = [
  { label: "Data", needsContainer: true, names: ["records", "zones", "feed", "subscriptions", "preferences", "jobs"] },
  { label: "Schema", needsContainer: true, names: ["types", "indexes", "roles", "schema"] },
  { label: "Container", needsContainer: true, names: ["access", "webhooks", "logs", "telemetry", "usage", "limits", "deploy", "reset"] },
  { label: "Server", needsContainer: false, names: ["containers", "users", "audit", "cluster", "loads", "team"] },
];
