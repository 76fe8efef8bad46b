import RaftCore
import Storage

/// A copy of a database would take the room that is kept for everything else.
struct NoRoom: Error, CustomStringConvertible {
    var description: String
}

extension NodeSettings {
    /// - Throws: `NoRoom` where the disk has no more free than what files of assets leave to everything else, beside
    ///   this many bytes; `DiskError` where it cannot be asked.
    func requireRoom(for bytes: UInt64) throws {
        let free = try log.disk.freeBytes(at: dataPath)
        guard free - assets.spareBytes < Int(clamping: bytes) else { return }
        var text = "there is no room for a snapshot, which needs \(bytes >> 20) MB more: the disk of \(dataPath) has "
        text += "\(free >> 20) MB free, and keeps \(assets.spareBytes >> 20) MB for everything else"
        let leftovers = try Quarantine.leftovers(in: dataPath)
        if !leftovers.isEmpty {
            text += "; delete \(leftovers.joined(separator: " and ")) there once the other nodes are ready"
        }
        throw NoRoom(description: text)
    }
}
