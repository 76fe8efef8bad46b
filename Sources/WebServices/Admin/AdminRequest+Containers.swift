import Cluster
import Directory
import RecordModel
import Service

extension AdminRequest {
    func containers() async throws(RequestFailure) -> Reply {
        let directory = try await directory()
        let containers = directory.containers
        return Reply { writer in
            writer.key("containers")
            writer.array { writer in
                for name in containers.keys.sorted() {
                    writer.object { writer in
                        writer.member("name", name)
                        writer.member("created", integer: containers[name] ?? 0)
                        writer.member("keys", integer: Int64(directory.keys(of: name).count))
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
        guard directory.containers[container] != nil else { throw Self.unknownContainer(container) }
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

    static func unknownContainer(_ name: String) -> RequestFailure {
        RequestFailure(.notFound, "no container '\(name)': create it with `zonekeeper container create \(name)`")
    }
}
