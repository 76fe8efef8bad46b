import Cluster
import Glibc
import RaftCore
import Storage

// What a node keeps on its disk, and what becomes of it.
extension SimulatedNode {
    func writeImage(
        of folder: String, to image: String, _ disk: SimulatedDisk, after crash: SimulatedDisk.Crash
    ) throws(DiskError) {
        try makeFolder(at: image)
        guard let names = try? listFolder(at: folder) else { return }
        let known = try disk.writeKnown(of: folder, to: image, after: crash) { SimulatedDisk.folder(of: $0) == folder }
        for name in names.sorted() {
            let (path, newPath) = ("\(folder)/\(name)", "\(image)/\(name)")
            switch name {
            case "log", "assets": try disk.writeImage(of: path, to: newPath, after: crash)
            case "shards", "snapshots":
                try makeFolder(at: newPath)
                for file in try listFolder(at: path).sorted() {
                    try writeImage(ofFile: "\(path)/\(file)", to: "\(newPath)/\(file)", after: crash)
                }
            default:
                if known.contains(path) || isSpecialFile(at: path) { continue }
                try writeImage(ofFile: path, to: newPath, after: crash)
            }
        }
    }

    private func writeImage(
        ofFile path: String, to newPath: String, after crash: SimulatedDisk.Crash
    ) throws(DiskError) {
        guard !path.hasSuffix(DatabaseNames.suffix) else {
            let name = String(path.dropLast(DatabaseNames.suffix.count))
            guard let former = DatabaseNames.former(of: name) else { return }
            if crash == .process { return try copyFile(former, to: newPath) }
            // It comes behind the file that has the name now.
            guard world.chance(50) else { return }
            world.met(.lostDatabaseName)
            let newName = String(newPath.dropLast(DatabaseNames.suffix.count))
            for suffix in ["-wal", DatabaseImage.keptSuffix] { try removeFile(at: newName + suffix) }
            return try copyFile(former, to: newName)
        }
        if Self.besideDatabases.contains(where: path.hasSuffix) { return }
        guard path.hasSuffix(".sqlite") else { return try copyFile(path, to: newPath) }
        if try DatabaseImage.write(of: path, to: newPath, after: crash, using: &world.generator) {
            world.met(.lostCommits)
        }
    }

    /// Copies the data aside as they are.
    func keepImage(at place: String) {
        guard let disk, process?.isDead == false else { return }
        // Only a folder that has taken part is an old one later.
        imageLife = cluster?.identity.hasTakenPart == true ? life : .max
        try? writeImage(of: folder, to: place, disk, after: .process)
    }

    /// Copies the data of a node that is down, whole and durable.
    func copyData(to place: String) throws(DiskError) {
        precondition(isDown, "node \(number) is not down")
        try Self.copy(folder, to: place)
    }

    private static func copy(_ folder: String, to place: String) throws(DiskError) {
        try makeFolder(at: place)
        for name in try listFolder(at: folder).sorted() {
            let (path, newPath) = ("\(folder)/\(name)", "\(place)/\(name)")
            if isSpecialFile(at: path) {
                try copy(path, to: newPath)
            } else if name.hasSuffix(".sqlite") {
                try DatabaseImage.copy(path, to: newPath)
            } else if !besideDatabases.contains(where: name.hasSuffix) {
                try copyFile(path, to: newPath)
            }
        }
    }

    private static let besideDatabases = ["-wal", "-shm", DatabaseImage.keptSuffix, DatabaseNames.suffix]

    /// Puts something else, or nothing, in the place of the data of a node that is down.
    func replaceData(by place: String?) {
        precondition(isDown, "node \(number) is not down")
        removeTree(folder)
        forgetUnsynced()
        mustBeginAnew = nil
        if let place { _ = rename(place, folder) }
    }
}
