/** All screens, and how the navigation groups them. */
import { accessScreen } from "/console/files/screens/access.js";
import { auditScreen } from "/console/files/screens/audit.js";
import { clusterScreen } from "/console/files/screens/cluster.js";
import { containersScreen } from "/console/files/screens/containers.js";
import { deployScreen, resetScreen } from "/console/files/screens/deploy.js";
import { indexesScreen } from "/console/files/screens/indexes.js";
import { limitsScreen } from "/console/files/screens/limits.js";
import { recordsScreen } from "/console/files/screens/records.js";
import { rolesScreen } from "/console/files/screens/roles.js";
import { schemaTextScreen } from "/console/files/screens/schematext.js";
import { teamScreen } from "/console/files/screens/team.js";
import { typesScreen } from "/console/files/screens/types.js";
import { usageScreen, zonesScreen } from "/console/files/screens/usage.js";
import { usersScreen } from "/console/files/screens/users.js";

/** @type {Record<string, {title: string, icon: string, show: () => any, needsContainer?: boolean}>} */
export const screens = {
    containers: { title: "Containers", icon: "container", show: containersScreen },
    records: { title: "Records", icon: "records", show: recordsScreen, needsContainer: true },
    zones: { title: "Zones", icon: "zones", show: zonesScreen, needsContainer: true },
    types: { title: "Record Types", icon: "types", show: typesScreen, needsContainer: true },
    indexes: { title: "Indexes", icon: "index", show: indexesScreen, needsContainer: true },
    roles: { title: "Security Roles", icon: "role", show: rolesScreen, needsContainer: true },
    schema: { title: "Schema Text", icon: "text", show: schemaTextScreen, needsContainer: true },
    access: { title: "API Access", icon: "key", show: accessScreen, needsContainer: true },
    usage: { title: "Usage", icon: "usage", show: usageScreen, needsContainer: true },
    limits: { title: "Limits", icon: "limit", show: limitsScreen, needsContainer: true },
    deploy: { title: "Deploy Schema Changes…", icon: "deploy", show: deployScreen, needsContainer: true },
    reset: { title: "Reset Environment…", icon: "reset", show: resetScreen, needsContainer: true },
    users: { title: "Users", icon: "user", show: usersScreen },
    audit: { title: "Audit", icon: "audit", show: auditScreen },
    cluster: { title: "Cluster", icon: "cluster", show: clusterScreen },
    team: { title: "Settings", icon: "settings", show: teamScreen },
};

/** @type {{label: string, needsContainer: boolean, names: string[]}[]} */
export const groups = [
    { label: "Data", needsContainer: true, names: ["records", "zones"] },
    { label: "Schema", needsContainer: true, names: ["types", "indexes", "roles", "schema"] },
    { label: "Container", needsContainer: true, names: ["access", "usage", "limits", "deploy", "reset"] },
    { label: "Server", needsContainer: false, names: ["containers", "users", "audit", "cluster", "team"] },
];
