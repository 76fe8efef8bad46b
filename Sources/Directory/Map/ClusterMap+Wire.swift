package import Wire

extension ClusterMap.Node: WireCodable {
    /// 1 id, 2 peers' host, 3 peers' port, 4 clients' URL, 5 incarnation, 6 last generation, 7 leaving.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        writer.field(2, peerHost)
        writer.field(3, UInt64(peerPort))
        writer.field(4, clientURL)
        if incarnation != 0 { writer.field(5, incarnation) }
        if lastGeneration != 0 { writer.field(6, lastGeneration) }
        if isLeaving { writer.field(7, true) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(id: 0, peerHost: "", peerPort: 0, clientURL: "")
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.unsigned()
            case 2: peerHost = try reader.string()
            case 3: peerPort = Int(truncatingIfNeeded: try reader.unsigned())
            case 4: clientURL = try reader.string()
            case 5: incarnation = try reader.unsigned()
            case 6: lastGeneration = try reader.unsigned()
            case 7: isLeaving = try reader.bool()
            default: try reader.skip()
            }
        }
    }
}

extension ClusterMap: WireCodable {
    /// 1 cluster, 2 epoch, 3 node, 4 shard's replicas, 5 slot's shard, 6 directory's replicas, 7 replicas a shard, 8
    /// removed node. Replicas: 1 node, then 2 generation where it is not 0.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, clusterID)
        writer.field(2, epoch)
        for node in nodes { writer.field(3) { node.encode(to: &$0) } }
        for replicas in shards { writer.field(4) { Self.encode(replicas, to: &$0) } }
        writer.fields(5, slots.map(UInt64.init))
        writer.field(6) { Self.encode(directory, to: &$0) }
        writer.field(7, UInt64(replicasPerShard))
        for node in removed { writer.field(8, node) }
    }

    /// A map of the time before generations has no fields above 5.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(clusterID: "", epoch: 0, nodes: [], shards: [], slots: [])
        var directory: [Replica]?
        var replicasPerShard: UInt64?
        while let field = try reader.nextField() {
            switch field {
            case 1: clusterID = try reader.string()
            case 2: epoch = try reader.unsigned()
            case 3: nodes.append(try reader.message())
            case 4: shards.append(try Self.replicas(&reader))
            case 5: slots.append(Int(truncatingIfNeeded: try reader.unsigned()))
            case 6: directory = try Self.replicas(&reader)
            case 7: replicasPerShard = try reader.unsigned()
            case 8: removed.append(try reader.unsigned())
            default: try reader.skip()
            }
        }
        self.directory = directory ?? nodes.map { Replica(node: $0.id) }
        self.replicasPerShard = Int(truncatingIfNeeded: replicasPerShard ?? UInt64(shards.first?.count ?? 0))
        guard slots.count == Self.slotCount, slots.allSatisfy({ shards.indices.contains($0) }) else {
            throw .invalidValue(field: 5)
        }
    }

    private static func encode(_ replicas: [Replica], to writer: inout WireWriter) {
        for replica in replicas {
            writer.field(1, replica.node)
            if replica.generation != 0 { writer.field(2, replica.generation) }
        }
    }

    private static func replicas(_ reader: inout WireReader) throws(WireError) -> [Replica] {
        var nested = try reader.nested()
        var replicas: [Replica] = []
        while let field = try nested.nextField() {
            switch field {
            case 1: replicas.append(Replica(node: try nested.unsigned()))
            case 2:
                let generation = try nested.unsigned()
                guard !replicas.isEmpty, generation <= generationMax else { throw .invalidValue(field: 2) }
                replicas[replicas.count - 1].generation = generation
            default: try nested.skip()
            }
        }
        return replicas
    }
}
