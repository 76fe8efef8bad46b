import Directory
import Synchronization

/// The cluster's map as this node knows it: the newest that the directory here, or a peer, has shown; before there is
/// one, that of the founders. Readable from any thread.
final class Placement: Sendable {
    private let state: Mutex<ClusterMap?>
    private let bell = Bell<ClusterMap>()

    init(_ map: ClusterMap?) { state = Mutex(map) }

    /// Nil while this node is of no cluster.
    var map: ClusterMap? { state.withLock(\.self) }

    /// Sets what is called with each newer map, on whatever thread brings it.
    func listen(_ body: @escaping @Sendable (ClusterMap) -> Void) { bell.listen(body) }

    /// Takes a map that the directory has committed, unless a newer one is known.
    func offer(_ map: ClusterMap?) {
        guard let map else { return }
        let isNew = state.withLock { present in
            if let present, present.epoch > map.epoch || present == map { return false }
            present = map
            return true
        }
        if isNew { bell.ring(map) }
    }
}
