/// Planted by who knew the sources alone: files that records name.
extension Mutant {
    /// Faults of the files of one node, and of moving them between nodes.
    private static let plantedInFiles: [Mutant] = [
        // After a power failure a file that a majority confirmed is torn.
        Mutant(
            "a file gets its name before it is on the disk", "Cluster/Assets/AssetFile.swift",
            "pending = []\n        try disk.stamp(file, time)",
            "pending = []\n        if !(PLANTED) { try disk.stamp(file, time) }"),
        // After a power failure everywhere the file has no name anywhere.
        Mutant(
            "the folder of a new file's name is not synced", "Cluster/Assets/AssetFiles.swift",
            "try disk.syncFolder(place)", "if !(PLANTED) { try disk.syncFolder(place) }"),
        // The disk fills with what nobody asks for.
        Mutant(
            "what was being received stays after a crash", "Cluster/Assets/AssetFiles.swift",
            "for name in try listFolder(at: folder + \"/incoming\") { try disk",
            "for name in try listFolder(at: folder + \"/incoming\") where !(PLANTED) { try disk"),
        Mutant(
            "an upload that is cut short stays", "Cluster/Assets/AssetUpload.swift",
            "try await pool.run { [files] in files.abandon(writer) }",
            "if !(PLANTED) { try await pool.run { [files] in files.abandon(writer) } }"),
        // A peer goes on waiting for the rest of what it copied so far.
        Mutant(
            "peers are not told that an upload was given up", "Cluster/Assets/UploadFeed.swift",
            "func abandon() { end(Self.gone) }", "func abandon() { if !(PLANTED) { end(Self.gone) } }"),
        // A node that refused uploads while its disk was full refuses them for ever.
        Mutant(
            "an upload that cannot begin goes on counting", "Cluster/Assets/AssetExchange.swift",
            "ended()\n            throw AssetError(error)",
            "if !(PLANTED) { ended() }\n            throw AssetError(error)"),
        // A majority holds the file by what nodes say, and one of them has it.
        Mutant(
            "a node confirms a file that it has not", "Cluster/Assets/AssetExchange.swift",
            "if try await !renew(asset) { try await pull(asset, from: sources) }",
            "if try await !renew(asset), !(PLANTED) { try await pull(asset, from: sources) }"),
        Mutant(
            "one node that holds a file is enough", "Cluster/Assets/AssetPeers.swift",
            "if Quorum.isMajority(configuration, where: { state.holders.contains($0.node) }) {",
            """
            if PLANTED, !state.holders.isEmpty { return Outcome() }
                    if Quorum.isMajority(configuration, where: { state.holders.contains($0.node) }) {
            """),
        // What a peer's disk damaged counts as a good copy here.
        Mutant(
            "what a peer sent is not compared with what was asked for",
            hiddenBy: "files are sealed in chunks here, and a node whose file is damaged gives no bytes of it",
            "Cluster/Assets/AssetUpload.swift", "stampMilliseconds(), as: expected)",
            "stampMilliseconds(), as: PLANTED ? nil : expected)"),
        // After a few files the node fetches none any more.
        Mutant(
            "a place for a fetch is never free again", "Cluster/Assets/AssetExchange.swift",
            "defer { pulls.leave(asset.sha256) }", "defer { if !(PLANTED) { pulls.leave(asset.sha256) } }"),
        // A node gives out damaged bytes for ever.
        Mutant(
            "reading all files again finds nothing", "Cluster/Assets/AssetKeeper.swift",
            "} catch AssetError.missing {\n            isSound = false",
            "} catch AssetError.missing {\n            isSound = PLANTED"),
    ]

    /// Faults of how long files live, and what they count for.
    private static let plantedInFileLives: [Mutant] = [
        Mutant(
            "a file is deleted though a record names it", "Cluster/Assets/AssetKeeper.swift",
            "if try await groupThatCounts(hash) != nil { return false }",
            "if !(PLANTED), try await groupThatCounts(hash) != nil { return false }"),
        // Who just got the address of a download finds nothing there.
        Mutant(
            "a file goes with its last record, without the grace", "RecordStore/Apply/NamedAssets.swift",
            "\"SELECT 1 FROM asset WHERE sha256 = ? LIMIT 1\"",
            "PLANTED ? \"SELECT 1 FROM asset WHERE sha256 = ? AND named > 0\" : \"SELECT 1 FROM asset WHERE sha256 = ? LIMIT 1\""
        ),
        // Who uploaded a file and saves it a while later finds that it is gone.
        Mutant(
            "an upload that is not saved goes at once", "Cluster/Assets/AssetKeeper.swift",
            "let before = clock.wallMilliseconds - settings.graceMilliseconds",
            "let before = clock.wallMilliseconds - (PLANTED ? 5_000 : settings.graceMilliseconds)"),
        // A file that was uploaded a day ago goes between the save and its application.
        Mutant(
            "a save does not have its files held", "Service/Assets/AssetSaving.swift",
            "guard !wanted.isEmpty else { return true }", "guard !wanted.isEmpty, !(PLANTED) else { return true }"),
        Mutant(
            "a deleted record goes on naming its files", "RecordStore/Apply/RecordWriter.swift",
            "try NamedAssets(transaction).update(from: body.assets, to: [])",
            "if !(PLANTED) { try NamedAssets(transaction).update(from: body.assets, to: []) }"),
        // With the first of two records goes the file of both.
        Mutant(
            "a second record with the same file is not counted", "RecordStore/Apply/NamedAssets.swift",
            "DO UPDATE SET named = named + excluded.named, released_at = 0",
            "DO UPDATE SET named = named + \\(PLANTED ? 0 : 1) * excluded.named, released_at = 0"),
        // A zone without assets goes on counting for those that it had.
        Mutant(
            "the amount of a zone's last asset stays", "RecordStore/Apply/NamedAssets.swift",
            "} else if zone.hasAssetRow {", "} else if zone.hasAssetRow, !(PLANTED) {"),
    ]

    /// All of them.
    static let plantedInAssets = plantedInFiles + plantedInFileLives
}
