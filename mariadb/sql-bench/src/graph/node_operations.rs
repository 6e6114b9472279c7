//! The operations on nodes. Each is one statement.

use frondb_bench::Result;

use super::payload::NODE;
use super::requester::Requester;
use super::schema::NODE_TYPE;

impl Requester {
    pub(super) fn insert_node(&mut self) -> Result<()> {
        self.data.clear();
        NODE.append(&mut self.data, &mut self.prng);
        let (time, data) = (self.now / 1_000, &self.data);
        self.session
            .query(&format!(
                "INSERT INTO nodetable (type,version,time,data) VALUES ({NODE_TYPE},0,{time},{data})"
            ))
            .map(drop)
    }

    pub(super) fn update_node(&mut self) -> Result<()> {
        let id = self.node_updates.id(&mut self.prng);
        self.data.clear();
        NODE.append(&mut self.data, &mut self.prng);
        let (time, data) = (self.now / 1_000, &self.data);
        self.session
            .query(&format!(
                "UPDATE nodetable SET version = version + 1, time = {time}, data = {data} \
                 WHERE id = {id} AND type = {NODE_TYPE}"
            ))
            .map(drop)
    }

    pub(super) fn delete_node(&mut self) -> Result<()> {
        let id = self.node_deletes.id(&mut self.prng);
        let sql = format!("DELETE FROM nodetable WHERE id = {id} AND type = {NODE_TYPE}");
        self.session.query(&sql).map(drop)
    }

    pub(super) fn get_node(&mut self) -> Result<()> {
        let id = self.node_reads.id(&mut self.prng);
        self.session
            .query(&format!("SELECT id,type,version,time,data FROM nodetable WHERE id = {id}"))
            .map(drop)
    }
}
