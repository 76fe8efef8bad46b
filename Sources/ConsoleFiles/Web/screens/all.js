/** All screens, and how the navigation groups them. */
import { containersScreen } from "/console/files/screens/containers.js";
import { recordsScreen } from "/console/files/screens/records.js";

/** @type {Record<string, {title: string, icon: string, show: () => any, needsContainer?: boolean}>} */
export const screens = {
    containers: { title: "Containers", icon: "container", show: containersScreen },
    records: { title: "Records", icon: "records", show: recordsScreen, needsContainer: true },
};

/** @type {{label: string, needsContainer: boolean, names: string[]}[]} */
export const groups = [
    { label: "Data", needsContainer: true, names: ["records"] },
    { label: "Cluster", needsContainer: false, names: ["containers"] },
];
