import Glibc
import Storage

/// A file of a node that has no name: the system removes it with the last reference to it, also where the node is
/// killed. Nothing of it is synced.
package final class ScratchFile: Sendable {
    private let file: DiskFile
    private let pool: BlockingPool

    /// - Parameter freeBytes: what the node's disk must have free.
    /// - Throws: `unavailable` where it has less, or too much to do; `failed` where no file can be made.
    package init(of node: ClusterNode, freeBytes: UInt64) async throws(ClusterError) {
        let (folder, pool) = (node.settings.dataPath, node.pools.assets)
        if let free = NodeMetrics.diskSpace(at: folder)?.free, free < freeBytes {
            throw .unavailable(
                "the node's disk has \(free >> 20) MB free, and this begins where there are \(freeBytes >> 20) MB")
        }
        self.pool = pool
        file = try await Self.run(on: pool) {
            let path = "\(folder)/scratch-\(UInt64.random(in: 0 ... .max)).tmp"
            let file = try DiskFile(path: path, flags: O_RDWR | O_CREAT | O_EXCL)
            try removeFile(at: path)
            return file
        }
    }

    /// Writes bytes at an offset.
    /// - Throws: `failed` where the disk cannot; `unavailable` where the node is stopping or has too much to do.
    package func write(_ bytes: [UInt8], at offset: Int) async throws(ClusterError) {
        try await Self.run(on: pool) { [file] in try file.writeAll(bytes, at: offset) }
    }

    /// Reads bytes at an offset; fewer only at the end.
    /// - Throws: as `write`.
    package func read(at offset: Int, count: Int) async throws(ClusterError) -> [UInt8] {
        try await Self.run(on: pool) { [file] in try file.bytes(at: offset, count: count) }
    }

    private static func run<Value: Sendable>(
        on pool: BlockingPool, _ work: @escaping @Sendable () throws -> Value
    ) async throws(ClusterError) -> Value {
        do {
            return try await pool.run(work)
        } catch let error as DiskError {
            throw .failed("a file for a while cannot be kept: \(error)")
        } catch {
            throw .unavailable("the node is stopping, or its disk has too much to do")
        }
    }
}
