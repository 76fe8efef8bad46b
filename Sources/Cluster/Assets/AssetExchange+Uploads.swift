import Logging
import PeerTransport
import RaftCore
import RecordModel

// Copies of files that are still coming in (decision 0019). Each is a hint: whatever goes wrong with one, `hold`
// fetches the file afterwards.
extension AssetExchange {
    /// Answers a peer's question about files.
    /// - Parameter level: that of a group's replica here; nil where there is none.
    func serve(
        _ request: NodeRequest, from node: NodeID, _ answer: @escaping @Sendable (NodeReply) -> Void,
        level: (GroupID) -> FeatureLevel?
    ) {
        func refusal(for group: GroupID) -> NodeReply? {
            guard let level = level(group) else { return .notLeader(hint: nil) }
            if level >= .assets { return nil }
            return .unavailable("the nodes are being upgraded, and have no assets before that")
        }
        switch request {
        case .holdAsset(let asset, let group, let sources, let upload):
            if let refusal = refusal(for: group) {
                answer(refusal)
            } else {
                hold(asset, from: sources, after: upload, answer)
            }
        case .followUpload(let upload, let group):
            if let refusal = refusal(for: group) { answer(refusal) } else { follow(upload, from: node, answer) }
        case .readAsset(let asset, let range): read(asset, range, answer)
        case .readUpload(let upload, let offset): read(upload, from: offset, answer)
        default: answer(.failed("no question about a file"))
        }
    }

    /// What peers may ask of an upload of this node.
    func openFeed(of content: AssetContent, for group: GroupID) -> UploadFeed {
        let id = UploadID(rawValue: max(platform.random(), 1))
        return feeds.open(id, content) { [weak self] in
            guard let self else { return }
            platform.startTask { await self.findFollowers(of: id, in: group) }
        }
    }

    /// Asks as many voters of the group to copy an upload as make a majority with this node: the answer to the client
    /// waits for no more, so the others' copies would only be in the way of these.
    private func findFollowers(of upload: UploadID, in group: GroupID) async {
        let deadline = Deadline(milliseconds: settings.requestDeadlineMilliseconds, from: platform.clock.now)
        guard let configuration = try? await router.members(of: group, by: deadline).configuration else { return }
        let own = settings.nodeID
        let others = Set((configuration.voters + configuration.outgoing).map(\.node)).subtracting([own]).sorted()
        var holders: Set<NodeID> = [own]
        // Nodes begin with the one behind them, so that not all choose the same.
        for node in others.filter({ $0 > own }) + others.filter({ $0 < own }) {
            if Quorum.isMajority(configuration, where: { holders.contains($0.node) }) { return }
            guard await peers.follow(upload, of: group, at: node) else { continue }
            holders.insert(node)
            feeds[upload]?.followed(by: node)
        }
    }

    /// Serves `followUpload`: copies what another node takes in, while it comes.
    func follow(_ upload: UploadID, from node: NodeID, _ answer: @escaping @Sendable (NodeReply) -> Void) {
        guard follows.enterNow(upload) else { return answer(.overloaded) }
        answer(.done([]))
        platform.startTask { [self] in
            defer { follows.leave(upload) }
            do {
                let asset = try await copy(upload, from: node)
                counters.update { counts in
                    (counts.pulls, counts.pulledBytes) = (counts.pulls + 1, counts.pulledBytes + asset.size)
                    counts.earlyPulls += 1
                }
            } catch {
                logger.debug("upload \(upload) of node \(node) is not copied while it comes in: \(error)")
            }
        }
    }

    /// Block after block while the upload goes on, then what is left, as of any file.
    private func copy(_ upload: UploadID, from node: NodeID) async throws -> AssetReference {
        let file = try await begin(limit: AssetReference.sizeMax)
        let asset: AssetReference
        do {
            var offset: UInt64 = 0
            asset = try await peers.blocks(of: upload, at: node) { block in
                try await file.write(block)
                offset += UInt64(block.count)
            }
            try await receive(asset, after: offset, from: [node], in: file)
        } catch {
            await file.abandon()
            throw error
        }
        return try await file.finish(as: asset)
    }

    /// Serves a block of an upload that comes in here.
    func read(_ upload: UploadID, from offset: UInt64, _ answer: @escaping @Sendable (NodeReply) -> Void) {
        guard let feed = feeds[upload] else { return answer(UploadFeed.gone) }
        guard let (range, size) = feed.read(from: offset, answer) else { return }
        serve(answer) { try feed.content.bytes(range, of: size) }
    }
}
