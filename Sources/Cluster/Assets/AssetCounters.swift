package import RecordModel
import Synchronization

/// What this node did with files since its start, and what it knows of them.
package struct AssetCounts: Hashable, Sendable {
    /// Files that were here at the last look.
    package var files: UInt64 = 0
    /// Their bytes on the disk.
    package var bytes: UInt64 = 0
    /// Files that were fetched whole from peers.
    package var pulls: UInt64 = 0
    /// Their bytes.
    package var pulledBytes: UInt64 = 0
    /// Those of these files that were fetched while they still came in elsewhere.
    package var earlyPulls: UInt64 = 0
    /// Attempts that brought nothing, or something else.
    package var failedPulls: UInt64 = 0
    /// Files that records name and that are not here yet, at the last look: a node that may have them was not asked,
    /// or did not answer. As many as are noted at a time, where more are missing.
    package var fetching: UInt64 = 0
    /// Files that records name and that no node has whole, at the last look: all were asked.
    package var missing: UInt64 = 0
    /// The first of these by their hashes, at most `missingFilesMax`.
    package var missingFiles: [AssetReference] = []
    package static let missingFilesMax = 20
    /// Bytes that were read to compare them with their hash.
    package var scrubbedBytes: UInt64 = 0
    /// Files that were found to be something else.
    package var damaged: UInt64 = 0
    /// Files that were deleted because nothing names them.
    package var collected: UInt64 = 0
}

/// The counts of a node; any thread.
final class AssetCounters: Sendable {
    private let counts = Mutex(AssetCounts())

    var current: AssetCounts { counts.withLock(\.self) }

    func update(_ change: (inout AssetCounts) -> Void) { counts.withLock { change(&$0) } }
}
