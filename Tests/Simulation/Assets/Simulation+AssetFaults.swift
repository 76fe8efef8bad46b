import Cluster
import Glibc
import RaftCore
import Service
import Storage

// What disks do to files of assets, and how nodes keep these here.
extension SimulatedNode {
    /// Uploads that a node takes at a time.
    static let uploadsMax = 6

    /// Times as short as a simulation needs them.
    func assetSettings(_ disk: SimulatedDisk) -> AssetSettings {
        var settings = AssetSettings()
        settings.disk = disk
        settings.uploadsMax = Self.uploadsMax
        settings.pieceMilliseconds = 1_500
        settings.holdMilliseconds = 4_000
        settings.graceMilliseconds = FileBook.graceMilliseconds
        settings.renewalMilliseconds = 5_000
        settings.roundMilliseconds = 1_000
        settings.comparisonMilliseconds = 30_000
        settings.searchMilliseconds = 10_000
        settings.collectionMilliseconds = 5_000
        settings.scrubPauseMilliseconds = 40_000
        return settings
    }

    /// The files that the node has, by their names below `assets`; those that are being received, too.
    var assetFiles: [String] {
        let assets = "\(folder)/assets"
        return ((try? listFolder(at: assets)) ?? []).filter { $0 != "damaged" }.flatMap { place in
            ((try? listFolder(at: "\(assets)/\(place)")) ?? []).map { "\(place)/\($0)" }
        }
    }

    /// Counts what the process did with files, before it ends.
    func noteAssetCounts() {
        guard let counts = running?.service.node.assetCounts else { return }
        let met: [(UInt64, Situation)] = [
            (counts.pulls, .assetPulled), (counts.earlyPulls, .assetCopiedEarly), (counts.damaged, .assetRepaired),
            (counts.collected, .assetCollected),
        ]
        for (count, situation) in met where count > 0 { world.met(situation) }
    }
}

extension Simulation {
    /// Has the disk of one node damage files now and then: the others have what was acknowledged.
    func scheduleRot() {
        world.schedule(after: world.milliseconds(20_000...60_000), .fault, for: nil) { [unowned self] in
            guard !isHealed else { return }
            if !isCalm {
                damageFile(of: nodes[0], among: nodes[0].assetFiles.filter { !$0.hasPrefix("incoming/") })
                if world.chance(50) { fillDiskForFiles(of: world.pick(nodes)) }
            }
            scheduleRot()
        }
    }

    /// Leaves a disk no room for files, only for the log: a file ends in its middle, or does not begin.
    private func fillDiskForFiles(of node: SimulatedNode) {
        count("noRoomForFiles")
        world.note("FAULT the disk of node \(node.number) has no room for files")
        node.diskFaults.roomForAssets = world.random(0...(world.chance(50) ? 2_000 : 50_000))
        world.schedule(after: world.milliseconds(5_000...30_000), .fault, for: nil) {
            node.diskFaults.roomForAssets = nil
        }
    }

    func damageFile(of node: SimulatedNode, among names: [String]) {
        guard node.isEnlisted, !names.isEmpty else { return }
        let name = world.pick(names)
        let path = "\(node.folder)/assets/\(name)"
        guard let file = try? DiskFile(path: path, flags: O_RDWR), var content = try? readWholeFile(at: path),
            let time = try? file.modified(), content.count > 24
        else { return }  // An empty file has nothing that could be wrong.
        node.mayFail = true
        count("damagedFile")
        world.note("FAULT the file \(path) is damaged")
        switch world.random(0...9) {
        case 0: _ = try? removeFile(at: path)
        case 1: _ = ftruncate(file.descriptor, off_t(world.random(0...max(0, content.count - 1))))
        default:
            content[world.random(0...content.count - 1)] ^= 1 << UInt8(world.random(0...7))
            _ = try? writeWhole(content, to: file)
        }
        recorder.files.damaged[name] = .some(try? readWholeFile(at: path))
        // A disk that loses bits does not say when.
        _ = try? file.stamp(time)
    }
}
