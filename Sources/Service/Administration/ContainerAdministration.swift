import Cluster
package import Directory
import RecordModel

/// Containers: making and ending them, their keys, and what they are held to.
package struct ContainerAdministration: Sendable {
    /// What is known of a container.
    package struct Summary: Sendable {
        /// Unique in the cluster.
        package var name: String
        /// Milliseconds since 1970.
        package var created: Int64
        /// How many keys for encrypted fields it has.
        package var keys: Int
        /// Accounts that have used it.
        package var users: Int
        /// Nil where it was not deleted.
        package var deletion: ContainerDeletion?
        /// What people are told of it.
        package var details: ContainerDetails
    }

    let administration: Administration
    private var service: RecordService { administration.service }

    /// Those that the administrator may see, sorted by name, with those that were deleted and can be restored.
    package func list() async throws(RequestFailure) -> [Summary] {
        let directory = try await service.cluster.newestDirectory()
        let access = try administration.access
        let names = Set(directory.containers.keys).union(directory.deletions.keys)
        return names.filter { access.covers($0) }.sorted().map { name in
            let deletion = directory.deletions[name]
            return Summary(
                name: name, created: directory.containers[name] ?? deletion?.created ?? 0,
                keys: directory.keys(of: name).count, users: directory.userCount(of: name), deletion: deletion,
                details: directory.details(of: name))
        }
    }

    /// Makes a container.
    package func create(_ name: String) async throws(RequestFailure) {
        if let deletion = try await service.cluster.newestDirectory().deletions[name] {
            throw RequestFailure(deletion.claim)
        }
        try await administration.change(.createContainer(name: name, time: service.now))
    }

    /// Hides a container for the whole team, or shows it, and gives it a note; nil leaves either.
    package func describe(
        _ name: String, isHidden: Bool?, note: String?
    ) async throws(RequestFailure) -> ContainerDetails {
        var details = try await administration.directory(with: name).details(of: name)
        if let isHidden { details.isHidden = isHidden }
        if let note { details.note = note }
        try await administration.requireLevel()
        try await administration.change(.administration(.describeContainer(details)))
        return details
    }

    /// Takes a container away from its clients at once; for a week its data are kept, and it can be restored.
    package func delete(_ name: String) async throws(RequestFailure) -> ContainerDeletion? {
        try await end(name, .delete(time: try service.trustedNow()))
        return try await service.cluster.newestDirectory().deletions[name]
    }

    /// Gives a deleted container back to its clients.
    package func restore(_ name: String) async throws(RequestFailure) {
        try await end(name, .restore(time: try service.trustedNow()))
    }

    private func end(_ name: String, _ step: ContainerEnd) async throws(RequestFailure) {
        // Where there is a secret, the level is in force that knows the command.
        _ = try await service.requireSecret()
        let directory = try await service.cluster.newestDirectory()
        if directory.deletions[name] == nil { try relay(directory.requireContainer(name)) }
        try await administration.change(.endContainer(name, step))
    }

    /// Gives a container a new key for encrypted fields; the earlier ones go on opening what they sealed.
    /// - Returns: its number.
    package func rotateKey(of name: String) async throws(RequestFailure) -> UInt64 {
        let directory = try await administration.directory(with: name)
        let number = (directory.keys(of: name).last?.number ?? 0) + 1
        let key = try relay(service.node.vault.newContainerKey(number: number, container: name))
        try await administration.change(.addContainerKey(container: name, key))
        return number
    }

    /// The directory that has a container's limits; those of the cluster for nil.
    package func limits(of container: String?) async throws(RequestFailure) -> DirectorySnapshot {
        guard let container else { return try await service.cluster.newestDirectory() }
        return try await administration.directory(with: container)
    }

    /// - Returns: as `limits`, after the change.
    package func setLimits(
        of container: String?, _ changes: [LimitChange]
    ) async throws(RequestFailure) -> DirectorySnapshot {
        _ = try await limits(of: container)
        // Builds without the cluster's secret do not know these, and could not follow the command.
        if changes.contains(where: { Self.assetLimits.contains($0.limit) }) { _ = try await service.requireSecret() }
        if changes.contains(where: { Self.actingLimits.contains($0.limit) }) {
            try await administration.requireLevel()
        }
        if changes.contains(where: { Self.versionLimits.contains($0.limit) }) {
            try await administration.requireLevel(.versions)
        }
        if changes.contains(where: { $0.limit.alert != nil }) { try await administration.requireLevel(.alerts) }
        if container != nil, let rule = changes.compactMap(\.limit.alert).first(where: { !$0.isOfContainers }) {
            throw .badRequest("\(rule.limit.rawValue): it is about nodes, not containers; set it for the cluster")
        }
        try await administration.change(.setLimits(container: container, changes))
        return service.directory
    }

    private static let assetLimits: Set = [
        ContainerLimit.assetUploadBytes, .assetUploadBytesMax, .unsavedAssetBytes, .userAssetBytes,
    ]

    private static let actingLimits: Set = [
        ContainerLimit.actAsRequestsPerSecond, .actAsMinutes, .actAsProductionMinutes,
    ]

    private static let versionLimits: Set = [ContainerLimit.recordVersionDays, .recordVersionsMax]
}
