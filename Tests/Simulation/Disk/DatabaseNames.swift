import Glibc
import Storage

/// The names of databases, which are made and exchanged without the simulated disk, as far as they are on it: beside
/// each stands a link to the file that had the name when its folder was last synced.
enum DatabaseNames {
    static let suffix = "-named"

    /// A folder was synced.
    static func synced(in folder: String) {
        // Files of assets and of the log are many, and their folders have no databases.
        guard !folder.hasSuffix("/log"), !SimulatedDisk.isOfAsset(folder + "/"),
            let names = try? listFolder(at: folder)
        else { return }
        for name in names {
            let path = "\(folder)/\(name)"
            if name.hasSuffix(".sqlite") {
                guard number(of: path) != number(of: path + suffix) else { continue }
                unlink(path + suffix)
                link(path, path + suffix)
            } else if name.hasSuffix(suffix), number(of: String(path.dropLast(suffix.count))) == nil {
                unlink(path)
            }
        }
    }

    /// The file that a power failure may bring back in the place of one that has its name now, or of none.
    static func former(of path: String) -> String? {
        guard let former = number(of: path + suffix), former != number(of: path) else { return nil }
        return path + suffix
    }

    /// What tells a file from others, whatever its name; nil where none has it.
    private static func number(of path: String) -> UInt64? {
        var status = stat()
        return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
    }
}
