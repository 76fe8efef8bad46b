import Cluster
import Directory
import RecordModel
import Service

extension AdminRequest {
    func containers() async throws(RequestFailure) -> Reply {
        let directory = try await directory()
        let access = try access
        let containers = directory.containers.filter { access.covers($0.key) }
        let deletions = directory.deletions.filter { access.covers($0.key) }
        return Reply { writer in
            writer.key("containers")
            writer.array { writer in
                for name in (Array(containers.keys) + deletions.keys).sorted() {
                    writer.object { writer in
                        writer.member("name", name)
                        writer.member("created", integer: containers[name] ?? deletions[name]?.created ?? 0)
                        writer.member("keys", integer: Int64(directory.keys(of: name).count))
                        writer.member("users", integer: Int64(directory.userCount(of: name)))
                        if let deletion = deletions[name] { writer.members(of: deletion) }
                    }
                }
            }
        }
    }

    func createContainer() async throws(RequestFailure) -> Reply {
        let name = try Self.containerName(try text("name"))
        try await change(.createContainer(name: name, time: context.service.now))
        return Reply { $0.member("name", name) }
    }

    /// Gives a container a new key for encrypted fields; the earlier ones go on opening what they sealed.
    func rotateKey() async throws(RequestFailure) -> Reply {
        let container = try parameter("container")
        let directory = try await directory()
        try Self.requireContainer(container, in: directory)
        let number = (directory.keys(of: container).last?.number ?? 0) + 1
        let key: ContainerKey
        do throws(ServiceError) {
            key = try context.service.node.vault.newContainerKey(number: number, container: container)
        } catch {
            throw RequestFailure(error)
        }
        try await change(.addContainerKey(container: container, key))
        return Reply { writer in
            writer.member("container", container)
            writer.member("key", integer: Int64(number))
        }
    }

    /// Takes a container away from its clients at once; for a week its data are kept, and it can be restored.
    func deleteContainer() async throws(RequestFailure) -> Reply {
        let name = try Self.containerName(try parameter("name"))
        guard try parameter("confirm") == name else {
            throw RequestFailure(
                .badRequest,
                "confirm: the container's own name is expected, '\(name)': its clients are refused from then on")
        }
        try await end(name, .delete(time: try context.service.trustedNow()))
        let deletion = try await directory().deletions[name]
        return Reply { writer in
            writer.member("name", name)
            if let deletion { writer.members(of: deletion) }
        }
    }

    func restoreContainer() async throws(RequestFailure) -> Reply {
        let name = try Self.containerName(try parameter("name"))
        try await end(name, .restore(time: try context.service.trustedNow()))
        return Reply { $0.member("name", name) }
    }

    private func end(_ name: String, _ step: ContainerEnd) async throws(RequestFailure) {
        // Where there is a secret, the level is in force that knows the command.
        _ = try await context.service.requireSecret()
        try await change(.endContainer(name, step))
    }

    /// - Throws: `NOT_FOUND` where there is no such container, or it was deleted.
    static func requireContainer(_ name: String, in directory: DirectorySnapshot) throws(RequestFailure) {
        do throws(ServiceError) { try directory.requireContainer(name) } catch { throw RequestFailure(error) }
    }
}

extension JSONWriter {
    fileprivate mutating func members(of deletion: ContainerDeletion) {
        member("deleted", integer: deletion.deleted)
        if !deletion.isPurging { member("restorableUntil", integer: deletion.restorableUntil) }
    }
}
