import Cluster
import Directory
import RecordModel
import Service

// What containers are held to: values of the cluster and of single containers.
extension AdminRequest {
    func limits() async throws(RequestFailure) -> Reply {
        let directory = try await directory()
        return Self.limits(of: try limitedContainer(in: directory), in: directory)
    }

    /// Sets what the body names; null takes a value back. Answers with all limits as they are then.
    func setLimits() async throws(RequestFailure) -> Reply {
        let container = try limitedContainer(in: try await directory())
        let changes = try limitChanges()
        guard !changes.isEmpty else {
            throw RequestFailure(
                .badRequest,
                "nothing to change: a limit and its value, such as {\"requestsPerSecond\": 40}, is expected")
        }
        // Builds without the cluster's secret do not know these, and could not follow the command.
        if changes.contains(where: { [.assetUploadBytes, .assetUploadBytesMax, .unsavedAssetBytes].contains($0.limit) }) {
            _ = try await context.service.requireSecret()
        }
        try await change(.setLimits(container: container, changes))
        return Self.limits(of: container, in: context.service.node.directory.snapshot)
    }

    /// The container that the parameter names; nil where it is missing, for the cluster's own values.
    private func limitedContainer(in directory: DirectorySnapshot) throws(RequestFailure) -> String? {
        guard let container = url["container"], !container.isEmpty else { return nil }
        guard directory.containers[container] != nil else { throw Self.unknownContainer(container) }
        return container
    }

    private func limitChanges() throws(RequestFailure) -> [LimitChange] {
        guard case .object(let members) = try json else {
            throw RequestFailure(.badRequest, "the body: an object of limits and their values is expected")
        }
        var changes: [LimitChange] = []
        for member in members {
            guard let limit = ContainerLimit(rawValue: member.key) else {
                let names = ContainerLimit.allCases.map(\.rawValue).joined(separator: ", ")
                throw RequestFailure(.badRequest, "'\(member.key)' is no limit: there are \(names)")
            }
            switch member.value {
            case .null: changes.append(LimitChange(limit, nil))
            case .integer(let value) where limit.range.contains(value): changes.append(LimitChange(limit, value))
            default:
                throw RequestFailure(
                    .badRequest,
                    "\(limit.rawValue): a whole number (\(limit.unit.rawValue)) from \(limit.range.lowerBound) to "
                        + "\(limit.range.upperBound), or null to take it back, is expected, not "
                        + String(decoding: member.value.serialized(), as: UTF8.self).prefix(40))
            }
        }
        return changes
    }

    private static func limits(of container: String?, in directory: DirectorySnapshot) -> Reply {
        let cluster = directory.overrides(of: nil)
        let own = container.map { directory.overrides(of: $0) } ?? [:]
        return Reply { writer in
            if let container {
                writer.member("container", container)
                writer.member("users", integer: Int64(directory.userCount(of: container)))
            }
            writer.key("limits")
            writer.array { writer in
                for limit in ContainerLimit.allCases {
                    let set = own[limit].map { ($0, "container") } ?? cluster[limit].map { ($0, "cluster") }
                    let (value, source) = set ?? (limit.standard, "default")
                    writer.object { writer in
                        writer.member("name", limit.rawValue)
                        writer.member("value", integer: value)
                        writer.member("source", source)
                        writer.member("unit", limit.unit.rawValue)
                    }
                }
            }
            writer.key("effective")
            writer.object { writer in
                guard let container else { return }
                write(directory.limits(of: container), users: directory.userCount(of: container), to: &writer)
            }
        }
    }

    /// What follows from the values with so many users.
    private static func write(_ limits: ContainerLimits, users: Int, to writer: inout JSONWriter) {
        for (limit, value) in [
            (ContainerLimit.requestsPerSecond, limits.requestsPerSecond(users: users)),
            (.keyValueRequestsPerSecond, limits.keyValueRequestsPerSecond(users: users)),
            (.concurrentRequests, limits[.concurrentRequests]), (.databaseBytes, limits.databaseBytes(users: users)),
            (.databaseRecords, limits[.databaseRecords]), (.assetBytes, limits.assetBytes(users: users)),
            (.transferBytesPerMonth, limits.transferBytesPerMonth(users: users)), (.userBytes, limits[.userBytes]),
            (.userRecords, limits[.userRecords]),
        ] { writer.member(limit.rawValue, integer: value) }
    }
}
