import Cluster
import Directory
import HistoryChecks
import RaftCore
import RecordModel
import Storage

// What must hold of files once everything is mended: whatever records name is everywhere with its bytes, and nothing
// else is anywhere.
extension Simulation {
    func checkFiles() {
        guard recorder.files.isUsed, recorder.isSetUp else { return }
        // One that was started and never added answers nobody.
        let present = nodes.filter { $0.running != nil && newestMap?.node(UInt64($0.number)) != nil }
        // Earlier versions would keep files that no record names.
        readBack { await $0.stopKeepingVersions() }
        // A node without room refuses files, however often it is asked, and takes them again once it has room.
        for node in present {
            node.diskFaults.roomForAssets = 0
            readBack { await $0.uploadInVain(at: node.number) }
            node.diskFaults.roomForAssets = nil
            readBack { await $0.uploadAndSave(at: node.number) }
        }
        for crash in [SimulatedDisk.Crash.power, .process, nil] {
            guard breakUploads(present, by: crash) else { return }
        }
        for zone in recorder.zones.indices { readBack { await $0.moveTime(of: zone) } }
        readBack { await $0.findPhotos() }
        // What records gave up is to be had for a while by the addresses that were known.
        let released = recorder.files.live.filter { _ in world.chance(50) }
        for photo in released { readBack { await $0.deleteRecord(of: photo) } }
        world.run(until: world.now + 12 * World.second)
        for photo in released {
            for node in present { readBack { await $0.download(photo, at: node.number) } }
        }
        readBack { await $0.findPhotos() }
        let photos = recorder.files.live
        damage(photos)
        awaitTidiness(photos)
        for photo in photos {
            for node in present { readBack { await $0.download(photo, at: node.number) } }
        }
        readBack { await $0.recountUsage() }
        for node in nodes { node.noteAssetCounts() }
    }

    /// Ends all nodes at once while files come in, or has the clients go away: what was acknowledged is there later,
    /// and of the rest nothing is.
    /// - Returns: whether all are back.
    private func breakUploads(_ present: [SimulatedNode], by crash: SimulatedDisk.Crash?) -> Bool {
        for (client, node) in zip(clients, present) { client.perform { await $0.beginUpload(at: node.number) } }
        world.run(until: world.now + 3 * World.second)
        if let crash {
            for node in present { node.crash(crash) }
            for node in present { node.start() }
        }
        return wait(seconds: 120, "a node does not come back after all crashed in uploads") { [unowned self] in
            clientsHaveEnded() && isUpgraded
        }
    }

    /// Has the first node's disk damage a file that a record names, which its node must find.
    private func damage(_ photos: [Client.Photo]) {
        guard options.loss == nil, nodes[0].running != nil else { return }
        let named = Set(photos.compactMap { clients[0].fileName($0.checksum) })
        damageFile(of: nodes[0], among: nodes[0].assetFiles.filter(named.contains))
    }

    /// Waits until nodes have the files that their groups' records name, and no others.
    private func awaitTidiness(_ photos: [Client.Photo]) {
        let end = world.now + UInt64(FileBook.graceMilliseconds + 120_000) * World.millisecond
        while let fault = untidiness(photos) {
            guard world.now < end else { return violated(fault) }
            world.run(until: world.now + 5 * World.second)
        }
    }

    private func untidiness(_ photos: [Client.Photo]) -> String? {
        guard let map = newestMap else { return "no node has a map" }
        for node in nodes where node.running != nil {
            let groups = Set(
                groups.filter { group in
                    guard let shard = group.shard else { return false }
                    return map.replicas(ofShard: shard).contains { $0.node == UInt64(node.number) }
                })
            let named = photos.filter { groups.contains(recorder.zones[$0.zone].group) }
            let wanted = Set(named.compactMap { clients[0].fileName($0.checksum) })
            let found = Set(node.assetFiles)
            if let missing = wanted.subtracting(found).min() {
                return "node \(node.number) lacks the file \(missing), which records of its groups name"
            }
            if let left = found.subtracting(wanted).min() {
                return "node \(node.number) goes on to have \(left), which nothing names"
            }
        }
        // The first node's disk is the one that damages files; a removed node mends none.
        guard nodes[0].running != nil else { return nil }
        for (name, content) in recorder.files.damaged.sorted(by: { $0.key < $1.key }) {
            guard let content, let present = try? readWholeFile(at: "\(nodes[0].folder)/assets/\(name)") else {
                continue
            }
            if present == content { return "node 1 goes on to have the damaged file \(name)" }
        }
        return nil
    }
}

extension Client {
    /// Every node takes uploads and saves once all is mended.
    func uploadAndSave(at node: Int) async {
        for _ in 0..<20 {
            if let receipt = await upload(in: 0, at: node) {
                return await save("last-\(node)", with: receipt)
            }
            await sleep(500 * World.millisecond)
        }
        recorder.violated("node \(node) takes no uploads after everything was mended")
    }

    /// Brings the time of a zone's shard here, a minute by each command: a shard that lags takes what is given up for
    /// older than it is, by no more than production's grace allows for.
    func moveTime(of zone: Int) async {
        for _ in 0...(ShardClock.lagMax / ShardClock.stepMax) {
            await modify(zone, [RecordWrite(.forceDelete, "nothing")], isAtomic: false)
        }
    }

    /// The photos of all records.
    func findPhotos() async {
        var all: [Photo] = []
        let names = Self.names + (1...nodes.count).map { "last-\($0)" }
        for zone in recorder.zones.indices {
            guard let photos = await photos(of: names, in: zone) else {
                recorder.violated("zone \(recorder.zones[zone].key.name) cannot be read after everything was mended")
                continue
            }
            all += photos
        }
        recorder.files.live = all
    }

    func deleteRecord(of photo: Photo) async {
        await modify(photo.zone, [RecordWrite(.forceDelete, photo.record)], isAtomic: false)
    }
}
