/// A file of zeros that is given back to a full disk, so that what was accepted can still be done, and something be deleted.
///
/// Room beside the raft log's reserve segment, for everything else in the data folder. Any thread may call any method.
package struct SpaceReserve: Sendable {
    private let path: String
    private let folder: String
    private let bytes: Int
    private let disk: any LogDisk

    package init(folder: String, bytes: Int, disk: any LogDisk) {
        self.folder = folder
        path = folder + "/reserve.free"
        self.bytes = bytes
        self.disk = disk
    }

    /// Gives the room back to the disk; nothing happens if that was done before.
    package func release() { try? disk.remove(path) }

    /// Makes the reserve, where it is not there and the disk has room for it and as much again.
    /// - Returns: whether it is there now; false where the disk has no room.
    /// - Throws: `DiskError` where something else is in the way.
    package func restore() throws(DiskError) -> Bool {
        if (try? disk.open(path, creating: false).size()) == bytes { return true }
        guard try disk.canSpare(bytes, in: folder) else { return false }
        do throws(DiskError) {
            try disk.fill(path, bytes: bytes)
            return true
        } catch {
            try? disk.remove(path)
            if error.isDiskFull { return false }
            throw error
        }
    }
}
