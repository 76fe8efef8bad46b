import Cluster
import Directory
import RaftCore
import Wire

// What a client sees of the directory, which every node answers from a copy of its own.
extension Client {
    /// Makes a container, or looks whether a node that may rely on its copy of the directory knows of all that were made before.
    func useDirectory() async {
        if recorder.containers.count < 12, world.chance(25) {
            await makeContainer()
        } else {
            await lookForContainers()
        }
    }

    private func makeContainer() async {
        let name = "iCloud.\(newValue())"
        // A change that is known to be done is known to every node that answers.
        let answer = await ask(repeats: false, triesMax: 3) { edge throws(ClusterError) in
            let entry = DirectoryEntry(.createContainer(name: name, time: edge.time))
            return try await edge.node.changeDirectory(entry, by: edge.deadline)
        }
        guard case .answered(let bytes, isFirst: _) = answer else { return }
        if case .done? = try? DirectoryOutcome(decoding: bytes) { recorder.containers.append(name) }
    }

    private func lookForContainers() async {
        let known = recorder.containers
        let answer = await ask(repeats: true, triesMax: 2) { edge throws(ClusterError) in
            try await edge.node.requireDirectory()
            let seen = edge.node.directory.snapshot.containers
            return known.first { seen[$0] == nil }
        }
        guard case .answered(let missing?, isFirst: _) = answer else { return }
        recorder.violated(
            "client \(number): a node relies on a directory without container \(missing), which was made before")
    }
}
